package spooltest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"example.com/svc/spool"
)

// childDir is the environment variable that makes the test binary the child of
// the crash case. Its value is the directory of the spool.
const childDir = "SPOOLTEST_CHILD_DIR"

// kills is how often the child is killed in one spool.
const kills = 6

func (s *suite) testReopen(t *testing.T) {
	dir := t.TempDir()
	sp, ids := s.open(t, dir), spool.NewIDs()
	a, b, c := ids.Next(), ids.Next(), ids.Next()
	for _, id := range []spool.ID{a, b, c} {
		put(t, sp, id, valueOf(id, 10_000))
	}
	if q, ok := sp.(spool.Quarantiner); ok {
		if err := q.Quarantine(t.Context(), c, "for the test"); err != nil {
			t.Fatal(err)
		}
	} else if err := sp.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sp.Delete(t.Context(), b), sp.Close()); err != nil {
		t.Fatal(err)
	}
	sp = s.openIn(t, dir)
	want(t, sp, a, valueOf(a, 10_000))
	wantMissing(t, sp, b)
	wantMissing(t, sp, c)
	if q, ok := sp.(spool.Quarantiner); ok {
		if n, err := q.Quarantined(t.Context()); n != 1 || err != nil {
			t.Errorf("Quarantined = %d, %v", n, err)
		}
	}
}

// lockedProbe makes the child only try to open the spool.
const lockedProbe = "SPOOLTEST_CHILD_LOCKED"

func (s *suite) testLocked(t *testing.T) {
	dir := t.TempDir()
	sp := s.openIn(t, dir)
	put(t, sp, spool.NewIDs().Next(), nil)
	cmd := child(t, dir)
	cmd.Env = append(cmd.Env, lockedProbe+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), spool.ErrLocked.Error()) {
		t.Errorf("a second process: %v, want a failure with %q; it said:\n%s", err, spool.ErrLocked, out)
	}
}

// child returns the command that runs this very test as the child.
func child(t *testing.T, dir string) *exec.Cmd {
	top, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+top+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	return cmd
}

// childMode does the work of the child when this process is one.
func (s *suite) childMode(t *testing.T) bool {
	dir := os.Getenv(childDir)
	if dir == "" {
		return false
	}
	sp := s.open(t, dir)
	if os.Getenv(lockedProbe) != "" {
		return true
	}
	ids := spool.NewIDs()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() { childWriter(t, sp, ids, w) })
	}
	wg.Wait()
	return true
}

// childWriter stores and removes until the process is killed. It reports "+id n"
// after each acknowledged Put and "-id" before each Delete, in one write each.
func childWriter(t *testing.T, sp spool.Spool, ids *spool.IDs, w int) {
	for i := 0; ; i++ {
		n := (w*7919 + i*2741) % 30_000
		var items []spool.Item
		for range i%3 + 1 {
			id := ids.Next()
			items = append(items, spool.Item{ID: id, Value: valueOf(id, n)})
		}
		if err := spool.PutAll(t.Context(), sp, items); err != nil {
			t.Errorf("Put: %v", err)
			return
		}
		for _, it := range items {
			fmt.Fprintf(os.Stdout, "+%s %d\n", it.ID, n)
		}
		if i%2 == 1 {
			fmt.Fprintf(os.Stdout, "-%s\n", items[0].ID)
			if err := sp.Delete(t.Context(), items[0].ID); err != nil {
				t.Errorf("Delete: %v", err)
				return
			}
		}
	}
}

// testKill kills the child at random points and checks what it acknowledged.
func (s *suite) testKill(t *testing.T) {
	dir := t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	stored := make(map[spool.ID]int)
	gone := make(map[spool.ID]bool)
	for range kills {
		runAndKill(t, child(t, dir), 20+rnd.IntN(300), stored, gone)
		sp := s.open(t, dir)
		for id, n := range stored {
			if !gone[id] {
				want(t, sp, id, valueOf(id, n))
			}
		}
		for it, err := range spool.Values(t.Context(), sp) {
			if err != nil {
				t.Errorf("after a kill: %v", err) // what was not acknowledged may be there, but whole
			}
			_ = it
		}
		if err := sp.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d acknowledged values, %d removals", len(stored), len(gone))
}

// runAndKill runs cmd until it reported lines lines, kills it, and notes all that
// it reported.
func runAndKill(t *testing.T, cmd *exec.Cmd, lines int, stored map[spool.ID]int, gone map[spool.ID]bool) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for i := 0; ; i++ {
		if i == lines {
			_ = cmd.Process.Kill() // cmd.Wait tells whether that worked
		}
		line, err := r.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("reading the child: %v", err)
			}
			break
		}
		note(t, strings.TrimSpace(line), stored, gone)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the child ended by itself: %v", err)
	}
}

func note(t *testing.T, line string, stored map[spool.ID]int, gone map[spool.ID]bool) {
	t.Helper()
	switch {
	case strings.HasPrefix(line, "+"):
		text, size, _ := strings.Cut(line[1:], " ")
		id, err := spool.ParseID(text)
		var n int
		if _, scanErr := fmt.Sscan(size, &n); err != nil || scanErr != nil {
			t.Fatalf("child said %q", line)
		}
		stored[id] = n
	case strings.HasPrefix(line, "-"):
		if id, err := spool.ParseID(line[1:]); err == nil {
			gone[id] = true
		}
	default:
		t.Errorf("child said %q", line)
	}
}
