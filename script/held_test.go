package script

import (
	"errors"
	"testing"

	"example.com/svc/mta"
)

func TestHeld(t *testing.T) {
	f := load(t, `local svc = require 'svc'
svc.on('make.x', function(domain, tenant)
  local c = {sent = 0}
  function c:send(msg)
    self.sent = self.sent + 1
    if self.sent == 2 then svc.reject(450, 'later') end
    if self.sent == 3 then kept:get_meta('x') end
    kept = msg
    return domain .. tostring(tenant) .. self.sent .. tostring(msg:get_meta('x'))
  end
  function c:spin() while true do end end
  return c
end)
svc.on('make.y', function() return 5 end)`, func(c *Config) { c.InstructionBudget = 100_000 })
	ctx := t.Context()
	h, err := f.Hold(ctx, "make.x", "a.example", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !h.Has("send") || h.Has("close") {
		t.Error("CU-5 Has is wrong")
	}
	if gauge(f, "lua_spare_count") != 0 {
		t.Error("CU-2 the state is not held")
	}
	out, err := h.Call(ctx, "send", newMessage())
	if err != nil || out[0] != "a.examplenil1nil" {
		t.Error("CU-3", out, err)
	}
	_, err = h.Call(ctx, "send", newMessage())
	var r *mta.Rejection
	if !errors.As(err, &r) || r.Code != 450 {
		t.Error("CU-4", err)
	}
	if _, err = h.Call(ctx, "send", newMessage()); !errors.Is(err, ErrStale) {
		t.Error("LU2", err)
	}
	if out, err = h.Call(ctx, "send", newMessage()); err != nil || out[0] != "a.examplenil4nil" {
		t.Error("CU-4 the object can be used after an error", out, err)
	}
	if _, err = h.Call(ctx, "spin"); !errors.Is(err, ErrBudget) {
		t.Error("LU5", err)
	}
	if _, err = h.Call(ctx, "send", newMessage()); !errors.Is(err, errHeld) {
		t.Error("a stopped state must not be used again", err)
	}
	h.Close()
	if n := gauge(f, "lua_count"); n != 0 {
		t.Error("LU3", n)
	}
	_, err = f.Hold(ctx, "make.y")
	wantText(t, err, "make.y handler at policy.lua:14 returned a number, want a table")
	_, err = f.Hold(ctx, "make.z")
	wantText(t, err, "no handler")
}
