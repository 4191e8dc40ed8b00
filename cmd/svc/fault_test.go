//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/svc/cmd/internal/load"
	"example.com/svc/mta/server"
	"example.com/svc/mta/settings"
	"example.com/svc/spool"
	"example.com/svc/spool/kinds"
)

// refusing returns an address that refuses connections.
func refusing(t testing.TB) string { return loopback(freePort(t)) }

// filled returns a site whose spool holds the n messages of l, and what the service said when it wrote them.
func filled(t *testing.T, l *load.Ledger) *site {
	t.Helper()
	s := newSite(t, refusing(t))
	s.retry = "1h"
	s.write(t)
	p := s.serve(t)
	if err := generator(s, l, 0, l.Len()).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	if accepted, arrived, _ := l.Progress(); accepted != l.Len() || arrived != 0 {
		t.Fatalf("%d accepted, %d arrived", accepted, arrived)
	}
	return s
}

// deliverTo lets the next start deliver to addr without delay.
func (s *site) deliverTo(t testing.TB, addr string) {
	s.mx, s.retry = addr, "1s"
	s.write(t)
}

// harm calls damage with every frame in a database whose value contains mark: the record, and the older copies of it
// that its freed pages hold.
func harm(t *testing.T, file, mark string, damage func(frame []byte)) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte("SPL\x01"))
		if i < 0 {
			break
		}
		at += i
		end := at + spool.HeaderSize
		if end <= len(b) {
			end += int(binary.BigEndian.Uint32(b[at+4:]))
		}
		if end <= len(b) {
			if value, err := spool.ParseFrame(b[at:end]); err == nil && bytes.Contains(value, []byte(mark)) {
				damage(b[at:end])
				n++
			}
		}
		at++
	}
	if n == 0 {
		t.Fatalf("no record with %q in %s", mark, file)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A damaged record is set aside, counted and logged; the rest starts and is delivered (flows SP-3).
func TestDamagedRecords(t *testing.T) {
	const n = 40
	l := load.NewLedger(n, 0, 0)
	s := filled(t, l)
	flip := func(f []byte) { f[len(f)-9] ^= 0x10 }
	cut := func(f []byte) { clear(f[len(f)/2:]) } // as a write that did not reach the disk in full
	header := func(f []byte) { f[7] ^= 1 }
	content := func(id int) string { return fmt.Sprintf("%s: %012d\r\n", load.IDField, id) }
	recipient := func(id int) string { return fmt.Sprintf("d%d.load.example", id) } // each has a domain of its own
	data, meta := filepath.Join(s.spool("data"), "spool.db"), filepath.Join(s.spool("meta"), "spool.db")
	harm(t, data, content(3), flip)
	harm(t, data, content(7), cut)
	harm(t, data, content(8), header)
	harm(t, meta, recipient(11), flip)
	harm(t, meta, recipient(12), cut)
	harm(t, meta, recipient(13), header)
	damaged := map[int]bool{3: true, 7: true, 8: true, 11: true, 12: true, 13: true}

	s.deliverTo(t, sinkFor(t, l, 0).Addr())
	p := s.serve(t)
	until(t, settleLimit, func() string { return fmt.Sprintf("%+v\n%s", l.Result(), p.stderr()) }, func() bool {
		return l.Missing() == len(damaged) && s.metric(t, "scheduled_count_total") == 0 &&
			s.metric(t, "message_quarantined_count") >= float64(len(damaged))
	})
	if got := s.metric(t, "message_quarantined_count"); got != float64(len(damaged)) {
		t.Errorf("message_quarantined_count %v, want %d", got, len(damaged))
	}
	p.stop(t)
	if got := strings.Count(p.stderr(), "message quarantined"); got != len(damaged) {
		t.Errorf("%d lines about quarantine, want %d:\n%s", got, len(damaged), p.stderr())
	}
	if r := l.Result(); r.Delivered != n-len(damaged) || r.Duplicated != 0 || r.Foreign != 0 {
		t.Errorf("%+v", r)
	}
	s.nothingLeft(t) // what was set aside stays aside
}

// A second process on the same spool is refused and does not disturb the first.
func TestSecondProcess(t *testing.T) {
	l := load.NewLedger(20, 0, 0)
	s := newSite(t, sinkFor(t, l, 0).Addr())
	p := s.serve(t)
	second := *s
	second.smtp, second.http, second.policy = loopback(freePort(t)), loopback(freePort(t)), filepath.Join(s.dir, "second.lua")
	second.write(t)
	q := launch(t, s.dir, "serve", "--policy", second.policy)
	if code := q.exit(t); code != 1 {
		t.Errorf("exit code %d", code)
	}
	oneError(t, q.stderr(), "in use by another process", filepath.Join("spool", "data"))
	if err := generator(s, l, 0, l.Len()).Run(t.Context()); err != nil {
		t.Error(err)
	}
	s.settled(t, l)
	p.stop(t)
	if r := l.Result(); r.Check() != nil || r.Delivered != l.Len() {
		t.Errorf("%+v", r)
	}
}

// oneError wants stderr to hold one error line, that of the command, with all of parts.
func oneError(t *testing.T, stderr string, parts ...string) {
	t.Helper()
	n := 0
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "svc: ") || strings.Contains(line, " ERR ") {
			n++
		}
	}
	last := stderr[strings.LastIndex(strings.TrimSpace(stderr), "\n")+1:]
	if n != 1 || !strings.HasPrefix(last, "svc: ") || !containsAll(last, parts...) {
		t.Errorf("want one error line with %q, got:\n%s", parts, stderr)
	}
}

// A listener that cannot be bound ends the start with an error that names the place and the address.
func TestPortInUse(t *testing.T) {
	for _, tc := range []struct {
		name, line string
		addr       func(*site) string
	}{
		{"http", ":6", func(s *site) string { return s.http }},
		{"smtp", ":7", func(s *site) string { return s.smtp }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, refusing(t))
			taken, err := net.Listen("tcp", tc.addr(s))
			if err != nil {
				t.Fatal(err)
			}
			defer taken.Close()
			p := launch(t, s.dir, "serve", "--policy", s.policy)
			if code := p.exit(t); code != 1 {
				t.Errorf("exit code %d", code)
			}
			oneError(t, p.stderr(), "policy.lua"+tc.line, tc.addr(s), "address already in use")
			if strings.Contains(p.stderr(), "initialization complete") {
				t.Error("it said that it serves")
			}
			halfStarted(t, s, tc.addr(s))
			if err := taken.Close(); err != nil {
				t.Fatal(err)
			}
			s.serve(t).stop(t)
		})
	}
}

// halfStarted runs the same start in this process, which goes on, and looks for what it left open.
func halfStarted(t *testing.T, s *site, taken string) {
	t.Helper()
	in, err := loadPolicy(t.Context(), policySource{path: s.policy}, newLog(t.Output(), 0, false))
	if err != nil {
		t.Fatal(err)
	}
	defer in.engine.Close()
	srv, err := in.build()
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Run(t.Context()); err == nil {
		t.Error("Run did not fail")
	}
	for _, addr := range []string{s.smtp, s.http} {
		if addr == taken {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("the other listener is still bound: %v", err)
			continue
		}
		_ = l.Close()
	}
	for _, name := range []string{server.DataSpool, server.MetaSpool} {
		c := settings.New(func(c *spool.Config) { c.Name, c.Path = name, s.spool(name) })
		sp, err := kinds.Open(t.Context(), c, newLog(t.Output(), 0, false))
		if err != nil {
			t.Errorf("the spool is still locked: %v", err)
			continue
		}
		if err := sp.Close(); err != nil {
			t.Error(err)
		}
	}
}
