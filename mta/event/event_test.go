package event_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"example.com/svc/mta/event"
)

type question struct{ Name string }

var (
	single = event.Define[question, string]("test_single", event.Single)
	chain  = event.Define[question, *string]("test_chain", event.Chain)
)

// CE-7: without a handler the caller applies the default.
func TestNoHandler(t *testing.T) {
	r, handled, err := single.Call(t.Context(), new(event.Local), question{})
	if r != "" || handled || err != nil {
		t.Fatalf("%q, %v, %v", r, handled, err)
	}
	if _, handled, _ := single.Call(t.Context(), nil, question{}); handled || single.Handled(nil) {
		t.Fatal("a nil bus answered")
	}
}

// CE-6: a second handler for a single-handler event is an error that names both places.
func TestDuplicate(t *testing.T) {
	bus := new(event.Local)
	fn := func(_ context.Context, q question) (string, error) { return "hello " + q.Name, nil }
	if err := single.On(bus, fn); err != nil {
		t.Fatal(err)
	}
	err := single.On(bus, fn)
	var dup *event.DuplicateError
	if !errors.As(err, &dup) || !strings.HasPrefix(dup.First, "event_test.go:") || dup.First == dup.Second {
		t.Fatalf("second registration gave %v", err)
	}
	if err := event.Check(bus, "test_single", "x"); err == nil {
		t.Error("Check let a second handler through")
	}
	if r, handled, err := single.Call(t.Context(), bus, question{"you"}); r != "hello you" || !handled || err != nil {
		t.Errorf("%q, %v, %v", r, handled, err)
	}
}

// CE-5: handlers run in order, one that passes lets the next one run.
func TestChain(t *testing.T) {
	bus := new(event.Local)
	var order []int
	answer := "two"
	for i := range 3 {
		err := chain.On(bus, func(context.Context, question) (*string, error) {
			order = append(order, i)
			if i == 0 {
				return nil, event.Pass
			}
			return &answer, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r, handled, err := chain.Call(t.Context(), bus, question{})
	if r != &answer || !handled || err != nil || len(order) != 2 {
		t.Fatalf("%v, %v, %v, order %v", r, handled, err, order)
	}
}

func TestErrorNamesTheSourceOnce(t *testing.T) {
	bus := new(event.Local)
	cause := errors.New("boom")
	_ = bus.Register("test_single", event.Handler{Source: "policy.lua:7",
		Call: func(context.Context, any) (any, error) { return nil, cause }})
	_, handled, err := single.Call(t.Context(), bus, question{})
	if !handled || !errors.Is(err, cause) || err.Error() != "test_single handler at policy.lua:7: boom" {
		t.Fatalf("%v, %v", handled, err)
	}
}

func TestWrongTypes(t *testing.T) {
	bus := new(event.Local)
	_ = bus.Register("test_single", event.Handler{Source: "x:1", Call: func(context.Context, any) (any, error) { return 5, nil }})
	if _, _, err := single.Call(t.Context(), bus, question{}); err == nil || !strings.Contains(err.Error(), "answered with int") {
		t.Errorf("a wrong answer type gave %v", err)
	}
	if err := bus.Register("y", event.Handler{}); err == nil {
		t.Error("a handler without function was registered")
	}
}

// CE-3: a generation is replaced in one step; handlers of other groups stay.
func TestReplace(t *testing.T) {
	bus := new(event.Local)
	h := func(src string) event.Handler {
		return event.Handler{Source: src, Call: func(context.Context, any) (any, error) { return src, nil }}
	}
	_ = bus.Register("a", h("go"))
	for _, gen := range []string{"one", "two"} {
		bus.Replace("script", map[string][]event.Handler{"a": {h(gen)}, gen: {h(gen)}})
		hs := bus.Handlers("a")
		if len(hs) != 2 || hs[0].Source != "go" || hs[1].Source != gen {
			t.Fatalf("generation %s: %v", gen, hs)
		}
	}
	if len(bus.Handlers("one")) != 0 || len(bus.Names()) != 2 {
		t.Errorf("names left: %v", bus.Names())
	}
}

func TestConcurrentUse(t *testing.T) {
	bus := new(event.Local)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 100 {
				if i == 0 {
					bus.Replace("g", map[string][]event.Handler{"test_single": {{Source: "r",
						Call: func(context.Context, any) (any, error) { return "x", nil }}}})
				}
				if _, _, err := single.Call(t.Context(), bus, question{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCallWithoutHandler(b *testing.B) {
	bus := new(event.Local)
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = single.Call(context.Background(), bus, question{"n"})
	}
}

func BenchmarkCallGoHandler(b *testing.B) {
	bus := new(event.Local)
	_ = single.On(bus, func(_ context.Context, q question) (string, error) { return q.Name, nil })
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = single.Call(context.Background(), bus, question{"n"})
	}
}
