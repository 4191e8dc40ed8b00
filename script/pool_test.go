package script

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPoolSetters(t *testing.T) {
	t.Run("CE-4 uses", func(t *testing.T) {
		f := load(t, counting)
		ask(t, f, "", "1")
		if err := f.SetMaxUses(2); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"2", "1", "2", "1"} {
			ask(t, f, "", want)
		}
		if err := f.SetMaxUses(0); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"2", "1", "1"} {
			ask(t, f, "", want)
		}
	})
	t.Run("CE-4 age", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := load(t, counting)
			ask(t, f, "", "1")
			if err := f.SetMaxAge(time.Second); err != nil {
				t.Fatal(err)
			}
			ask(t, f, "", "2")
			time.Sleep(time.Second)
			ask(t, f, "", "1")
		})
	})
	t.Run("CE-4 spare", func(t *testing.T) {
		f := load(t, counting)
		g := f.gen.Load()
		for range 3 {
			vm, err := g.newState(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			g.put(vm)
		}
		last := g.spare[3]
		if err := f.SetMaxSpare(1); err != nil {
			t.Fatal(err)
		}
		if len(g.spare) != 1 || g.spare[0] != last || gauge(f, "lua_count") != 1 || gauge(f, "lua_spare_count") != 1 {
			t.Error(len(g.spare), gauge(f, "lua_count"), gauge(f, "lua_spare_count"))
		}
		if err := f.SetMaxSpare(0); err != nil {
			t.Fatal(err)
		}
		ask(t, f, "", "1")
		ask(t, f, "", "1")
		if gauge(f, "lua_count") != 0 || gauge(f, "lua_spare_count") != 0 {
			t.Error(gauge(f, "lua_count"), gauge(f, "lua_spare_count"))
		}
	})
	t.Run("negative", func(t *testing.T) {
		f := load(t, counting)
		for _, err := range []error{f.SetMaxAge(-1), f.SetMaxUses(-1), f.SetMaxSpare(-1)} {
			wantText(t, err, "negative")
		}
		ask(t, f, "", "1")
		ask(t, f, "", "2")
	})
	t.Run("while it runs", func(t *testing.T) {
		f := load(t, counting)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 100 {
					if _, _, err := askText.Call(context.Background(), f.bus, ""); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range 100 {
			for _, err := range []error{f.SetMaxAge(time.Minute), f.SetMaxUses(i), f.SetMaxSpare(i % 3)} {
				if err != nil {
					t.Error(err)
				}
			}
		}
		if err := f.SetMaxSpare(0); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if gauge(f, "lua_count") != 0 || gauge(f, "lua_spare_count") != 0 {
			t.Error(gauge(f, "lua_count"), gauge(f, "lua_spare_count"))
		}
	})
}

func TestGetenv(t *testing.T) {
	t.Setenv("SCRIPT_TEST_HOME", "/secret")
	const body = "return tostring(os.getenv('SCRIPT_TEST_HOME')) .. tostring(os.getenv('EMPTY')) .. tostring(os.getenv('OTHER'))"
	if v, err := eval(t, body); v != "nilnilnil" || err != nil {
		t.Error(v, err)
	}
	vars := map[string]string{"SCRIPT_TEST_HOME": "here", "EMPTY": ""}
	v, err := eval(t, body, func(c *Config) {
		c.Getenv = func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	})
	if v != "herenil" || err != nil {
		t.Error(v, err)
	}
}
