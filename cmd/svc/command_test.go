//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/svc/cmd/internal/load"
)

// Choices 21: a line per listener, then the one that says that everything is up.
func TestStartLines(t *testing.T) {
	s := newSite(t, refusing(t))
	p := s.serve(t)
	lines := strings.Split(p.stderr(), "\n")
	at := func(end string) int {
		return slices.IndexFunc(lines, func(l string) bool { return strings.HasSuffix(l, end) })
	}
	smtp, web := at("smtp listener on "+s.smtp), at("http listener on "+s.http)
	ready := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "initialization complete") })
	if smtp < 0 || web < 0 || ready < smtp || ready < web {
		t.Errorf("lines:\n%s", p.stderr())
	}
	for _, addr := range []string{s.smtp, s.http} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Errorf("after the last line: %v", err)
			continue
		}
		_ = c.Close()
	}
	p.stop(t)
}

// Choices 21: a port that the system chose is shown.
func TestStartLineOfChosenPort(t *testing.T) {
	s := newSite(t, refusing(t))
	s.smtp = "127.0.0.1:0"
	s.write(t)
	p := s.serve(t)
	line, _ := p.await(t, 0, "smtp listener on ")
	m := regexp.MustCompile(`smtp listener on (127\.0\.0\.1:[1-9][0-9]*)$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("line %q", line)
	}
	c, err := net.Dial("tcp", m[1])
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	p.stop(t)
}

// Choices 23: SIGTERM and SIGINT end it with code 0 soon; what is queued waits in the spool for the next start.
func TestStopKeepsQueue(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			l := load.NewLedger(100, 0, 0)
			s := newSite(t, refusing(t))
			s.retry = "1h"
			s.write(t)
			p := s.serve(t)
			if err := generator(s, l, 0, l.Len()).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			p.signal(t, sig)
			if code := p.exit(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %s to stop", took)
			}
			s.deliverTo(t, sinkFor(t, l, 0).Addr())
			p = s.serve(t)
			s.settled(t, l)
			p.stop(t)
			if r := l.Result(); r.Check() != nil || r.Delivered != l.Len() {
				t.Errorf("%+v", r)
			}
		})
	}
}

// Choices 23: a delivery in progress is waited for; a second signal ends that, and the mail is still there.
func TestSecondSignal(t *testing.T) {
	l := load.NewLedger(1, 0, 0)
	reached, silent := silentPeer(t)
	s := newSite(t, silent)
	p := s.serve(t)
	if err := generator(s, l, 0, 1).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reached:
	case <-time.After(startLimit):
		t.Fatal("no delivery was begun")
	}
	p.signal(t, syscall.SIGTERM)
	_, n := p.await(t, 0, "shutting down")
	start := time.Now()
	p.signal(t, syscall.SIGTERM)
	p.await(t, n, "stopping at once")
	if code := p.exit(t); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s to stop at once", took)
	}
	s.deliverTo(t, sinkFor(t, l, 0).Addr())
	p = s.serve(t)
	s.settled(t, l)
	p.stop(t)
	if r := l.Result(); r.Check() != nil || r.Delivered != 1 {
		t.Errorf("%+v", r)
	}
}

// silentPeer is a mail server that says its banner and nothing more. The channel is closed at the first line it hears.
func silentPeer(t testing.TB) (<-chan struct{}, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { _ = ln.Close(); <-done })
	go func() {
		defer close(done)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte("220 silent.example ESMTP\r\n"))
		buf := make([]byte, 512)
		if _, err := c.Read(buf); err != nil {
			return
		}
		close(reached)
		for err == nil {
			_, err = c.Read(buf)
		}
	}()
	return reached, ln.Addr().String()
}

// Choices 23: SIGHUP loads the policy again; one that is broken leaves the old one in force and says so.
func TestReload(t *testing.T) {
	s := newSite(t, refusing(t))
	closed := func(text string) {
		s.extra = fmt.Sprintf("svc.on('smtp_server_rcpt_to', function() svc.reject(550, '%s') end)", text)
		s.write(t)
	}
	closed("5.1.1 the first policy")
	p := s.serve(t)
	rcpt := func() string {
		c, err := net.Dial("tcp", s.smtp)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(startLimit)); err != nil {
			t.Fatal(err)
		}
		sess := newSession(c)
		sess.reply(t)
		sess.say(t, "EHLO client.example")
		sess.say(t, "MAIL FROM:<a@load.example>")
		return sess.say(t, "RCPT TO:<b@load.example>")
	}
	if got := rcpt(); !strings.Contains(got, "the first policy") {
		t.Errorf("at the start: %s", got)
	}
	closed("5.1.1 the second policy")
	p.signal(t, syscall.SIGHUP)
	_, n := p.await(t, 0, "the policy was loaded again")
	if got := rcpt(); !strings.Contains(got, "the second policy") {
		t.Errorf("after a reload: %s", got)
	}
	s.extra = "this is no Lua"
	s.write(t)
	p.signal(t, syscall.SIGHUP)
	line, n := p.await(t, n, "not loaded again")
	if !containsAll(line, " ERR ", "policy.lua:") {
		t.Errorf("the line about a broken policy: %s", line)
	}
	if got := rcpt(); !strings.Contains(got, "the second policy") {
		t.Errorf("after a broken reload: %s", got)
	}
	s.extra = ""
	s.write(t)
	p.signal(t, syscall.SIGHUP)
	p.await(t, n, "the policy was loaded again")
	if got := rcpt(); !strings.HasPrefix(got, "250") {
		t.Errorf("after the third reload: %s", got)
	}
	p.stop(t)
}

// runHere runs a command in this process.
func runHere(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), err
}

func TestDemo(t *testing.T) {
	out, errs, err := runHere(t, "demo", "--messages", "200", "--timeout", "60s")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	for _, re := range []string{`(?m)^accepted +200$`, `(?m)^delivered +1[5-9][0-9]$`, `(?m)^bounced +[1-9][0-9]?$`,
		`(?m)^lost / duplicated +0 / 0$`, `p50 [0-9.]+ ms, p99`, `200 Reception`} {
		if !regexp.MustCompile(re).MatchString(out) {
			t.Errorf("no %q in:\n%s", re, out)
		}
	}
	if errs != "" {
		t.Errorf("stderr:\n%s", errs)
	}
	if _, _, err := runHere(t, "demo", "--messages", "1"); err == nil {
		t.Error("--messages 1 is taken")
	}
}

// Checking the embedded policy needs nothing and leaves nothing behind.
func TestCheckDefaultPolicy(t *testing.T) {
	if fileExists(defaultPath) {
		t.Skip("this machine has a policy at " + defaultPath)
	}
	dir := t.TempDir()
	p := launch(t, dir, "check")
	if code := p.exit(t); code != 0 || p.stderr() != "" {
		t.Errorf("exit code %d, stderr %q", code, p.stderr())
	}
	wantOnly(t, dir)
}

// The example passes the check, which opens and makes nothing.
func TestCheckExample(t *testing.T) {
	policy, err := filepath.Abs("../../examples/relay/init.lua")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(policy); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	out, errs, err := runHere(t, "check", "--policy", policy)
	if err != nil || out != "the policy is good\n" || errs != "" {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
	wantOnly(t, ".")
}

func TestCommands(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"version"}, []string{version}},
		{[]string{"--version"}, []string{version}},
		{[]string{"help"}, []string{"serve", "check", "demo", "doc", "version"}},
		{[]string{"--help"}, []string{"serve", "check", "demo", "doc", "version"}},
		{[]string{"doc", "make_queue_config"}, []string{"svc.make_queue_config(params: table)", "get_queue_config"}},
		{[]string{"doc", "svc.make_queue_config"}, []string{"svc.make_queue_config(params: table)"}},
		{[]string{"doc"}, []string{"svc.make_queue_config(", "svc.start_esmtp_listener("}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			out, errs, err := runHere(t, tc.args...)
			if err != nil || errs != "" || !containsAll(out, tc.want...) {
				t.Errorf("%v, stderr %q, stdout:\n%s", err, errs, out)
			}
		})
	}
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"srve"}, []string{`"srve"`, "svc help"}},
		{[]string{"proxy"}, []string{"not served yet"}},
		{[]string{"doc", "make_queue"}, []string{`"make_queue"`}},
		{[]string{"check", "policy.lua"}, []string{`"policy.lua"`}},
		{[]string{"check", "--polcy", "x"}, []string{"polcy"}},
		{[]string{"serve", "--log-level", "loud"}, []string{"loud"}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			_, _, err := runHere(t, tc.args...)
			if err == nil || !containsAll(err.Error(), tc.want...) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			p := launch(t, t.TempDir(), tc.args...)
			if code := p.exit(t); code != 1 || !containsAll(p.stderr(), tc.want...) {
				t.Errorf("exit code %d, stderr:\n%s", code, p.stderr())
			}
		})
	}
}
