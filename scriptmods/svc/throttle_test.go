package svc_test

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/limit"
	"example.com/svc/mta/server"
	"example.com/svc/spool/memory"
)

func TestThrottle(t *testing.T) {
	for name, body := range map[string]string{
		"TH-9 throttle": `local th = svc.make_throttle('n', '2/h')
			local r = th:throttle() eq(r.throttled, false) eq(r.remaining, 1) eq(r.retry_after, nil) eq(r.limit, 2)
			eq(r.reset_after, 1800)
			th:throttle() r = th:throttle() eq(r.throttled, true) eq(r.remaining, 0) eq(r.retry_after, 1800)`,
		"TH-4 shared by name and spec": `eq(svc.make_throttle('n', '1/h'):throttle().throttled, false)
			eq(svc.make_throttle('n', '1/h'):throttle().throttled, true)
			eq(svc.make_throttle('n', '2/h'):throttle().throttled, false)
			eq(svc.make_throttle('o', '1/h'):throttle().throttled, false)`,
		"explain": `eq(svc.make_throttle('n', 'local:100/m'):explain(), '100 in 1m0s, up to 100 at once, counted by this process alone')
			eq(svc.make_throttle('n', '100/m,max_burst=5'):explain(), '100 in 1m0s, up to 5 at once')`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t, body); err != nil {
				t.Error(err)
			}
		})
	}
	wantError(t, run(t, `svc.make_throttle('n', 'often')`), "policy.lua:2", "#2 (spec)", "often")
	wantError(t, run(t, `svc.make_throttle('', '1/h')`), "policy.lua:2", "name is empty")
	wantError(t, run(t, `svc.make_throttle('n')`), "policy.lua:2", "#2 (spec)", "throttle-spec")
}

func TestThrottleSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := run(t, `local th = svc.make_throttle('n', '1/m')
			eq(th:sleep_if_throttled(), false) eq(th:sleep_if_throttled(), true)
			svc.sleep(2.5)`)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 62*time.Second || d > 64*time.Second {
			t.Errorf("took %v", d)
		}
	})
	wantError(t, run(t, `svc.sleep(-1)`), "policy.lua:2", "not negative")
}

func TestThrottleDelays(t *testing.T) {
	s := mta.NewStore(memory.New(), memory.New(), nil, nil)
	m := s.New(mta.Envelope{}, []byte("x"))
	if err := run(t, `local th = svc.make_throttle('n', '1/h')
		eq(th:delay_message_if_throttled(a), false) eq(th:delay_message_if_throttled(a), true)`, m); err != nil {
		t.Fatal(err)
	}
	if d := time.Until(m.Due()); d < 59*time.Minute || d > time.Hour {
		t.Errorf("due in %v", d)
	}
}

// Names of policies are kept apart from those of the server, and the keeper is the one of the server.
func TestThrottleKeeper(t *testing.T) {
	f := load(t, handler(`svc.make_throttle('n', '1/h'):throttle()`))
	var keeper limit.Keeper
	if err := f.b.Edit(func(c *server.Config) { keeper = c.Keeper }); err != nil {
		t.Fatal(err)
	}
	if err := f.call(t); err != nil {
		t.Fatal(err)
	}
	rate, _ := limit.ParseRate("1/h")
	for key, want := range map[string]bool{"n": false, "user:n": true} {
		if res, err := keeper.Take(t.Context(), key, rate, 1); err != nil || res.Throttled != want {
			t.Errorf("%s: %+v, %v", key, res, err)
		}
	}
}
