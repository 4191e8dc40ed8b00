package script

import (
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
)

func BenchmarkNoArgs(b *testing.B) {
	f := load(b, "require('svc').on('test_none', function() end)")
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := onNothing.Call(ctx, f.bus, event.None{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTwoObjects(b *testing.B) {
	f := load(b, "require('svc').on('test_pair', function(msg, conn) end)")
	args := pairArgs{newMessage(), &mta.Session{}}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := onPair.Call(ctx, f.bus, args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSetMeta(b *testing.B) {
	f := load(b, "require('svc').on('test_pair', function(msg, conn) msg:set_meta('tenant', 'a') end)")
	args := pairArgs{newMessage(), &mta.Session{}}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := onPair.Call(ctx, f.bus, args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMakeConfig(b *testing.B) {
	f := load(b, `local svc = require 'svc'
svc.on('test_config', function(domain, tenant)
  return svc.make_config{egress_pool = 'pool-' .. (tenant or 'x'), max_age = '3d', limit = 5}
end)`)
	ctx := b.Context()
	q := mta.QueueName{Domain: "a.example", Tenant: "t"}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := askConfig.Call(ctx, f.bus, q); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewState(b *testing.B) {
	f := load(b, counting)
	g := f.gen.Load()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.newState(b.Context(), false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkManyClosures(b *testing.B) {
	f := load(b, `require('svc').on('test_none', function()
  local n = 0
  for i = 1, 100 do local a, c = i, i; local f = function() return a + c end; n = n + f() end
end)`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := onNothing.Call(b.Context(), f.bus, event.None{}); err != nil {
			b.Fatal(err)
		}
	}
}
