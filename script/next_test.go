package script

import (
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"nothing", "return next({})", "nil"},
		{"array", "return next({5})", "1"},
		{"behind the array", "return next({5}, 1)", "nil"},
		{"all of both parts", "local t, n = {1, 2, nil, 4, x = 1, [1.5] = 2, [true] = 3, [print] = 4}, 0 for k, v in next, t do n = n + 1 assert(t[k] == v) end return n", "7"},
		{"removing the current entry", "local t, n = {}, 0 for i = 1, 50 do t['k' .. i] = i t[i] = i end for k in next, t do t[k] = nil n = n + 1 end return n .. tostring(next(t))", "100nil"},
		{"removing others", "local t = {} for i = 1, 50 do t['k' .. i] = i end local n = 0 for k in next, t do n = n + 1 for i = 1, 50 do if 'k' .. i ~= k then t['k' .. i] = nil end end end return n", "1"},
		{"changing", "local t, n = {}, 0 for i = 1, 50 do t['k' .. i] = i end for k, v in next, t do t[k] = v + 1 n = n + v end return n", "1275"},
		{"asking in a walk", "local t, n = {}, 0 for i = 1, 50 do t['k' .. i] = i end for k in next, t do t[k] = nil n = n + (next(t) and 1 or 0) end return n", "49"},
		{"two walks over one table", "local t, n = {}, 0 for i = 1, 20 do t['k' .. i] = i end for a in next, t do for b in next, t do n = n + 1 end end return n", "400"},
		{"walks over many tables", `local ts, n = {}, 0 for i = 1, 30 do ts['t' .. i] = {a = 1, b = 2, c = 3} end
			for k, t in next, ts do ts[k] = nil for i, u in next, ts do n = n + (next(u) and 1 or 0) end
			for x in next, t do t[x] = nil n = n + 1 for _, u in next, ts do n = n + (next(u) and 1 or 0) end end end return n`, "1830"},
		{"a key twice", "local t = {a = 1, b = 2, c = 3} local k = next(t) t[k] = nil local x, y = next(t, k), next(t, k) return tostring(x == y and x ~= nil)", "true"},
		{"tables and functions as keys", "local t, n = {[{}] = 1, [print] = 2, [{}] = 3}, 0 for k, v in next, t do t[k] = nil n = n + v end return n", "6"},
		{"objects as keys", "local t, n = {}, 0 for i = 1, 30 do t[svc.make_config{limit = i}] = i end for k, v in next, t do assert(k.limit == v) t[k] = nil n = n + v end return n .. tostring(next(t))", "465nil"},
		{"key that was never there", "return select(2, pcall(next, {a = 1}, 'b'))", "invalid key to 'next'"},
		{"a key that came back", "local t = {a = 1, b = 2} local k = next(t) t[k] = nil t[k] = 1 local n = 0 for _ in next, t do n = n + 1 end return n", "2"},
		{"names that became elements", "local t, n = {x = 1, [3] = 'c', [2] = 'b'}, 0 for _ in next, t do end t[1] = 'a' t[4] = 'd' for k in next, t do n = n + 1 end return n", "5"},
		{"elements that were removed", "local t, n = {1, 2, 3, x = 1}, 0 for k in next, t do t[k] = nil n = n + 1 end return n .. tostring(next(t))", "4nil"},
		{"new keys are seen by a new walk", "local t, n = {a = 1}, 0 next(t) t.b = 2 t.c = 3 for k in next, t do n = n + 1 end return n", "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := eval(t, "return tostring((function() "+c.body+" end)())")
			if err != nil || v != c.want {
				t.Errorf("got %v, %v; want %s", v, err, c.want)
			}
		})
	}
	t.Run("the layout of the VM is known", func(t *testing.T) {
		if findTableParts() == nil {
			t.Error("next is that of the VM")
		}
	})
	t.Run("a walk takes linear time", func(t *testing.T) {
		start := time.Now()
		v, err := eval(t, "local t, n = {}, 0 for i = 1, 50000 do t['k' .. i] = i end for k, v in next, t do n = n + v t[k] = nil end return n")
		if err != nil || v != int64(1250025000) {
			t.Error(v, err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
	})
	t.Run("an idle state keeps no table", func(t *testing.T) {
		f := load(t, "require('svc').on('main', function() next({a = 1}) end)")
		if _, err := f.Call(t.Context(), "main"); err != nil {
			t.Fatal(err)
		}
		if vm := f.gen.Load().spare[0]; len(vm.cursors) != 0 {
			t.Error(vm.cursors)
		}
	})
}
