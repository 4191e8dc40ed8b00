//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is the program under test, built by TestMain.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "svc-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "svc")
	args := []string{"build", "-o", program}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the binary: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// Deadlines of the tests: how long a start, a stop and everything else may take before the test fails.
const (
	startLimit  = 20 * time.Second
	stopLimit   = 20 * time.Second
	settleLimit = 60 * time.Second
)

// process is a running binary and what it wrote to stderr.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and all was read

	mu    sync.Mutex
	lines []string
	grew  chan struct{} // closed and replaced at each line
	code  int
}

// launch starts the binary in dir with an empty environment. The process is killed and awaited when the test ends.
func launch(t testing.TB, dir string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{}), grew: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = []string{"PATH=/nonexistent"}
	p.cmd.SysProcAttr = childAttr()
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(stderr)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("stderr of %v:\n%s", args, p.tail(40))
		}
		if strings.Contains(p.stderr(), "DATA RACE") || strings.Contains(p.stderr(), "panic:") {
			t.Errorf("a race or a panic in %v:\n%s", args, p.stderr())
		}
	})
	return p
}

func (p *process) read(r io.Reader) {
	defer close(p.done)
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, sc.Text())
		close(p.grew)
		p.grew = make(chan struct{})
		p.mu.Unlock()
	}
	_ = p.cmd.Wait() // the code says how it ended
	p.mu.Lock()
	p.code = p.cmd.ProcessState.ExitCode()
	p.mu.Unlock()
}

// await returns the first line from number from on that contains text, and the number after it.
func (p *process) await(t testing.TB, from int, text string) (string, int) {
	t.Helper()
	limit := time.After(startLimit)
	for {
		p.mu.Lock()
		lines, grew := p.lines, p.grew
		p.mu.Unlock()
		for i := from; i < len(lines); i++ {
			if strings.Contains(lines[i], text) {
				return lines[i], i + 1
			}
		}
		from = max(from, len(lines))
		select {
		case <-grew:
		case <-p.done:
			p.mu.Lock()
			again := len(p.lines) > len(lines)
			p.mu.Unlock()
			if !again {
				t.Fatalf("the process ended without the line %q:\n%s", text, p.stderr())
			}
		case <-limit:
			t.Fatalf("no line %q in time:\n%s", text, p.stderr())
		}
	}
}

// exit waits for the end of the process and returns its exit code, -1 after a signal.
func (p *process) exit(t testing.TB) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // shows what it waits for
		<-p.done
		t.Fatalf("the process did not end in time:\n%s", p.stderr())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code
}

func (p *process) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("signal %v: %v\n%s", s, err, p.stderr())
	}
}

// kill ends the process without warning and waits for its end.
func (p *process) kill(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-p.done
}

// stop ends the process with SIGTERM and wants exit code 0.
func (p *process) stop(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	if code := p.exit(t); code != 0 {
		t.Fatalf("exit code %d after SIGTERM:\n%s", code, p.stderr())
	}
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// tail returns the last n lines.
func (p *process) tail(n int) string {
	lines := strings.Split(p.stderr(), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}

// freePort returns a port below the range that systems choose from by themselves, so that no outgoing connection takes
// it, or connects to itself through it, while the process that uses it is being restarted.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 15000 + rand.IntN(17000)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no free port")
	return 0
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// site is a folder with a policy, and the ports that the policy uses.
type site struct {
	dir, policy string
	smtp, http  string
	mx          string // where all mail goes, host:port
	retry       string
	extra       string // more of the policy
}

// newSite makes a policy that delivers everything to mx and retries after a second.
func newSite(t testing.TB, mx string) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), smtp: loopback(freePort(t)), http: loopback(freePort(t)), mx: mx, retry: "1s"}
	for s.http == s.smtp {
		s.http = loopback(freePort(t))
	}
	s.policy = filepath.Join(s.dir, "policy.lua")
	s.write(t)
	return s
}

// maxDeliveries is the number of delivery connections of the policy.
const maxDeliveries = 16

func (s *site) write(t testing.TB) {
	t.Helper()
	const free = "min_free_space = '0%', min_free_inodes = '0%'"
	text := fmt.Sprintf(`local svc = require 'svc'
svc.on('init', function()
  svc.define_spool { name = 'data', path = %q, %s }
  svc.define_spool { name = 'meta', path = %q, %s }
  svc.configure_local_logs { log_dir = %q, max_segment_duration = '1 hour', %s }
  svc.start_http_listener { listen = %q }
  svc.start_esmtp_listener { listen = %q }
end)
svc.on('get_queue_config', function()
  return svc.make_queue_config {
    retry_interval = %q, max_retry_interval = %q, protocol = { smtp = { mx_list = { %q } } },
  }
end)
svc.on('get_egress_path_config', function()
  return svc.make_egress_path { prohibited_hosts = {}, max_ready = 100000, connection_limit = %d }
end)
%s
`, s.spool("data"), free, s.spool("meta"), free, filepath.Join(s.dir, "logs"), free, s.http, s.smtp, s.retry, s.retry,
		sinkHost(s.mx), maxDeliveries, s.extra)
	writeFile(t, s.policy, text)
}

func (s *site) spool(name string) string { return filepath.Join(s.dir, "spool", name) }

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve starts the binary and waits until it serves.
func (s *site) serve(t testing.TB) *process {
	t.Helper()
	p := launch(t, s.dir, "serve", "--policy", s.policy)
	p.await(t, 0, "initialization complete")
	return p
}

// metric returns the sum over the labels of a metric of the running process.
func (s *site) metric(t testing.TB, name string) float64 {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	res, err := client.Get("http://" + s.http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %s, %v", res.Status, err)
	}
	sum, found := 0.0, false
	for line := range strings.Lines(string(body)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		fields := strings.Fields(rest)
		v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			t.Fatalf("metric %q: %v", line, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		t.Fatalf("no metric %s in:\n%s", name, body)
	}
	return sum
}

// until waits for a condition that no line and no channel tells of.
func until(t testing.TB, limit time.Duration, what func() string, ok func() bool) {
	t.Helper()
	end := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal(what())
		}
	}
}
