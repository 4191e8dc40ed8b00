//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/svc/cmd/internal/load"
)

const (
	crashSMTP    = 16        // connections of the SMTP generator
	crashHTTP    = 4         // requests of the HTTP generator at a time
	finishWindow = 256 + 256 // deliveries that wait for the commit that removes them: one batch and one channel
)

// sinkFor serves a ledger until the test ends.
func sinkFor(t testing.TB, l *load.Ledger, latency time.Duration) *load.Sink {
	t.Helper()
	s := &load.Sink{Ledger: l, Latency: latency}
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := background(func() error { return s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func generator(s *site, l *load.Ledger, first, count int) *load.Generator {
	return &load.Generator{Ledger: l, First: first, Count: count, Target: s.smtp, Sender: "test@load.example",
		Domain: load.Domains(50, 0), Sizes: []int{600, 3000, 20_000}, Concurrency: crashSMTP, PerSession: 100,
		Timeout: 30 * time.Second, Retry: true}
}

func web(s *site, l *load.Ledger, first, count int) *load.HTTPGenerator {
	return &load.HTTPGenerator{Ledger: l, First: first, Count: count, URL: "http://" + s.http, Sender: "test@load.example",
		Domain: load.Domains(50, 0), Size: 2000, Concurrency: crashHTTP, Timeout: 30 * time.Second}
}

// settled waits until every accepted message has arrived or was rejected and the queues are empty.
func (s *site) settled(t testing.TB, l *load.Ledger) {
	t.Helper()
	until(t, settleLimit, func() string { return fmt.Sprintf("not settled: %+v", l.Result()) },
		func() bool { return l.Missing() == 0 && s.metric(t, "scheduled_count_total") == 0 })
}

// Kill -9 at any moment, repeatedly, under load: every message answered with 250 arrives (S1, Q1, Q4), and only what was
// in flight comes twice.
func TestKill(t *testing.T) {
	t.Run("fast peer", func(t *testing.T) { killUnderLoad(t, 0) })
	// With a slow peer a queue builds up, so that each start finds many messages in the spool.
	t.Run("slow peer", func(t *testing.T) { killUnderLoad(t, 10*time.Millisecond) })
}

// crashes is how often a test kills the process.
func crashes(full, few int) int {
	if testing.Short() || raceEnabled {
		return few
	}
	return full
}

func killUnderLoad(t *testing.T, latency time.Duration) {
	kills := crashes(20, 6)
	const most, perLife = 400_000, 2000
	l := load.NewLedger(most+kills*perLife, 0.05, 0.01)
	s := newSite(t, sinkFor(t, l, latency).Addr())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gen := generator(s, l, 0, most)
	if latency > 0 {
		gen.Concurrency = crashSMTP / 2 // a longer queue would only take longer to empty
	}
	sent := background(func() error { return gen.Run(ctx) })

	for kill := range kills {
		p := launch(t, s.dir, "serve", "--policy", s.policy)
		life := 50*time.Millisecond + rand.N(350*time.Millisecond)
		if kill%5 == 4 {
			life = rand.N(100 * time.Millisecond) // perhaps before it serves
		} else {
			p.await(t, 0, "initialization complete")
		}
		var sends sync.WaitGroup
		if kill%2 == 1 {
			sends.Go(func() { _ = web(s, l, most+kill*perLife, perLife).Run(ctx) }) // breaks with the kill
		}
		<-time.After(life) // the moment of death is what is random here
		p.kill(t)
		sends.Wait()
	}
	p := s.serve(t)
	// Mail must flow again before the load ends: some more messages are accepted in this last life.
	before, _, _ := l.Progress()
	until(t, startLimit, func() string { return "nothing is accepted after the last restart" }, func() bool {
		now, _, _ := l.Progress()
		return now >= before+50
	})
	cancel()
	<-sent // ended by cancel: messages without an answer are nobody's
	s.settled(t, l)
	p.stop(t)

	r := l.Result()
	t.Logf("%d kills: %+v", kills, r)
	// A lost answer makes the generator send again, and a delivery whose removal was not on disk is made again.
	bound := kills * (crashSMTP + crashHTTP + maxDeliveries + finishWindow)
	switch {
	case r.Lost > 0 || r.Foreign > 0:
		t.Errorf("%d lost, %d foreign of %d accepted messages", r.Lost, r.Foreign, r.Accepted)
	case r.Duplicated > bound:
		t.Errorf("%d messages came twice, the bound is %d", r.Duplicated, bound)
	case r.Accepted < kills*20 || r.Deferred == 0 || r.Rejected == 0:
		t.Errorf("too little was tested: %+v", r)
	}
	if n, _ := gen.Errors(); n == 0 {
		t.Error("no session of the generator was broken by a kill")
	}
	s.nothingLeft(t)
}

// nothingLeft starts the service once more, in this process, and wants to find empty spools.
func (s *site) nothingLeft(t testing.TB) {
	t.Helper()
	var out bytes.Buffer
	in, err := loadPolicy(t.Context(), policySource{path: s.policy}, newLog(&out, slog.LevelDebug, false))
	if err != nil {
		t.Fatal(err)
	}
	defer in.engine.Close()
	srv, err := in.build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := background(func() error { return srv.Run(ctx) })
	select {
	case <-srv.Started():
	case err := <-done:
		t.Fatal(err)
	}
	<-srv.Recovered()
	queued := srv.Queued()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, text := range []string{"messages recovered", "without metadata", "quarantined"} {
		if strings.Contains(out.String(), text) || queued > 0 {
			t.Errorf("after everything was delivered %d are queued and the start says:\n%s", queued, out.String())
		}
	}
}

// Kill -9 while nothing is in flight: what was delivered and removed does not come again, and nothing is lost.
func TestKillAtRest(t *testing.T) {
	kills := crashes(5, 2)
	const each = 300
	l := load.NewLedger(2*each*kills, 0, 0.01)
	s := newSite(t, sinkFor(t, l, 0).Addr())
	for kill := range kills {
		p := s.serve(t)
		first := 2 * each * kill
		if err := generator(s, l, first, each).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := web(s, l, first+each, each).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.settled(t, l)
		s.atRest(t)
		p.kill(t)
	}
	p := s.serve(t)
	s.settled(t, l)
	p.stop(t)
	if r := l.Result(); r.Check() != nil || r.Accepted != l.Len() {
		t.Errorf("%+v, %v", r, r.Check())
	}
	s.nothingLeft(t)
}

// atRest waits until no spool was written to for 25 looks in a row: the last removals are committed.
func (s *site) atRest(t testing.TB) {
	t.Helper()
	var last [2]time.Time
	same := 0
	until(t, settleLimit, func() string { return "the spools do not come to rest" }, func() bool {
		same++
		for i, name := range []string{"data", "meta"} {
			st, err := os.Stat(filepath.Join(s.spool(name), "spool.db"))
			if err != nil {
				t.Fatal(err)
			}
			if !st.ModTime().Equal(last[i]) {
				last[i], same = st.ModTime(), 0
			}
		}
		return same >= 25
	})
}

// Without a kill nothing comes twice.
func TestNoDuplicates(t *testing.T) {
	const n = 2000
	l := load.NewLedger(2*n, 0.05, 0.01)
	s := newSite(t, sinkFor(t, l, 0).Addr())
	p := s.serve(t)
	sent := background(func() error { return web(s, l, n, n).Run(t.Context()) })
	if err := generator(s, l, 0, n).Run(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	s.settled(t, l)
	p.stop(t)
	if r := l.Result(); r.Check() != nil || r.Accepted != 2*n || r.Delivered+r.Rejected != 2*n {
		t.Errorf("%+v, %v", r, r.Check())
	}
	s.nothingLeft(t)
}

// SIGTERM in the middle of load and a restart, several times: every answer is given, every delivery is settled, so
// nothing is lost and nothing comes twice (Q3).
func TestTermRestart(t *testing.T) {
	const n, rounds = 60_000, 4
	l := load.NewLedger(n, 0.05, 0.01)
	s := newSite(t, sinkFor(t, l, 2*time.Millisecond).Addr())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := background(func() error { return generator(s, l, 0, n).Run(ctx) })
	for round := range rounds {
		p := s.serve(t)
		want := (round + 1) * 300
		until(t, startLimit, func() string { return fmt.Sprintf("not accepted: %+v", l.Result()) }, func() bool {
			accepted, arrived, _ := l.Progress()
			return accepted >= want && arrived >= want/2
		})
		p.signal(t, syscall.SIGTERM)
		if code := p.exit(t); code != 0 {
			t.Fatalf("exit code %d:\n%s", code, p.tail(20))
		}
	}
	cancel()
	<-sent
	p := s.serve(t)
	s.settled(t, l)
	p.stop(t)
	r := l.Result()
	t.Logf("%+v", r)
	if err := r.Check(); err != nil {
		t.Errorf("%v: %+v", err, r)
	}
	s.nothingLeft(t)
}
