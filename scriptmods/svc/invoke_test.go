package svc_test

import (
	"strings"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/mail"
	"example.com/svc/spool/memory"
)

const egressPolicy = `
svc.on('get_queue_config', function(domain, tenant) if tenant == 't' then return {egress_pool = domain} end end)
svc.on('get_egress_path_config', function(domain, source, site) return {provider_name = domain .. source .. site} end)
svc.on('get_egress_pool', function(name)
  if name == 'good' then return {name = name, entries = {{name = 's1'}}} end
  if name == 'bad' then return {name = name, entries = {{name = 's1'}, {name = 's2'}}} end
end)
svc.on('get_egress_source', function(name) if name == 's1' then return {name = name, ehlo_domain = 'e'} end end)
`

func TestInvoke(t *testing.T) {
	for name, body := range map[string]string{
		"queue":           `eq(svc.invoke_get_queue_config('c:t@d.example!r').egress_pool, 'd.example')`,
		"queue default":   `eq(svc.invoke_get_queue_config('d.example').egress_pool, 'unspecified')`,
		"path":            `local p = svc.invoke_get_egress_path_config('d', 's', 'x') eq(p.provider_name, 'dsx') eq(p.max_ready, 1024)`,
		"pool":            `eq(svc.invoke_get_egress_pool('good').entries[1].name, 's1')`,
		"pool built in":   `eq(svc.invoke_get_egress_pool('unspecified').entries[1].name, 'unspecified')`,
		"source":          `eq(svc.invoke_get_egress_source('s1').ehlo_domain, 'e')`,
		"source built in": `eq(svc.invoke_get_egress_source('unspecified').name, 'unspecified')`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := load(t, handler(body)+egressPolicy).call(t); err != nil {
				t.Error(err)
			}
		})
	}
	for body, want := range map[string]string{
		`svc.invoke_get_egress_pool('none')`: `no pool "none"`, `svc.invoke_get_egress_source('none')`: `no source "none"`,
		`svc.invoke_get_egress_pool('bad')`: `pool "bad": get_egress_source knows no source "s2"`,
	} {
		wantError(t, load(t, handler(body)+egressPolicy).call(t), "policy.lua:2", want)
	}
	if err := run(t, `eq(svc.invoke_get_egress_path_config('d', 's', 'x').max_ready, 1024)`); err != nil {
		t.Error(err)
	}
}

func TestSupplemental(t *testing.T) {
	msg := func() *mta.Message {
		return mta.NewStore(memory.New(), memory.New(), nil, nil).New(
			mta.Envelope{Recipients: []mta.Address{{Local: "u", Domain: "d.example"}}}, []byte("Subject: x\r\n\r\n"))
	}
	for body, want := range map[string]string{
		`svc.apply_supplemental_trace_header(a)`:                                "X-SvcRef",
		`svc.apply_supplemental_trace_header(a, {header_name = 'X-Other'})`:     "X-Other",
		`svc.apply_supplemental_trace_header(a, {supplemental_header = false})`: "",
	} {
		m := msg()
		if err := run(t, body, m); err != nil {
			t.Fatal(err)
		}
		data, err := m.Data(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if first := strings.SplitN(string(data), ":", 2)[0]; want != "" && first != want || want == "" && mail.Parse(data).Len() != 1 {
			t.Errorf("%s: %q", body, data)
		}
	}
	wantError(t, run(t, `svc.apply_supplemental_trace_header(a, {header_name = 'a b'})`, msg()), "policy.lua:2", "bad header field")
	wantError(t, run(t, `svc.apply_supplemental_trace_header(a, {header_nam = 'a'})`, msg()), "policy.lua:2", "header_name")
}
