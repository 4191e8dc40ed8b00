package message_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/script"
	"example.com/svc/scriptmods/message"
)

// messageBodies run on a message to user@to.example.
var messageBodies = map[string]string{
	"id":        `eq(#m:id(), 32) eq(m:id():match('^%x+$') ~= nil, true)`,
	"unset key": `eq(m:get_meta('x_none'), nil)`,
	"set_meta": `m:set_meta('x_s', 'text') eq(m:get_meta('x_s'), 'text')
			m:set_meta('x_b', false) eq(m:get_meta('x_b'), false)
			m:set_meta('x_t', {a = {1, 2, 'three'}}) eq(m:get_meta('x_t').a[3], 'three')
			m:set_meta('x_s', nil) eq(m:get_meta('x_s'), nil)
			m:set_meta('x_a', m:sender()) eq(m:get_meta('x_a'), 'sender@from.example')`,
	"sender": `eq(m:sender().user, 'sender') eq(m:sender().domain, 'from.example')
			eq(m:sender().email, 'sender@from.example') eq(tostring(m:sender()), 'sender@from.example')
			eq(m:sender() == m:sender(), true)`,
	"set_sender": `m:set_sender('"f\\oo"@x.example') eq(m:sender().user, 'foo') eq(m:sender().email, 'foo@x.example')
			m:set_sender(m:recipient()) eq(m:sender().email, 'user@to.example')
			m:set_sender('') eq(m:sender().email, '') eq(m:sender().domain, '')
			m:set_sender('"a b"@x.example') eq(m:sender().user, 'a b') eq(m:sender().email, '"a b"@x.example')`,
	"recipient": `eq(m:recipient().email, 'user@to.example') list(m:recipient_list(), {'user@to.example'})`,
	"set_recipient": `m:set_recipient('a@b.example') eq(m:recipient().email, 'a@b.example')
			m:set_recipient(m:sender()) eq(m:recipient().email, 'sender@from.example')
			m:set_recipient({'a@b.example', m:sender()}) list(m:recipient(), {'a@b.example', 'sender@from.example'})
			list(m:recipient_list(), {'a@b.example', 'sender@from.example'})`,
	"QN-1 queue_name": `eq(m:queue_name(), 'to.example')
			m:set_meta('tenant', 't') eq(m:queue_name(), 't@to.example')
			m:set_meta('campaign', 'c') eq(m:queue_name(), 'c:t@to.example')
			m:set_meta('routing_domain', 'r.example') eq(m:queue_name(), 'c:t@to.example!r.example')
			m:set_meta('queue', 'null') eq(m:queue_name(), 'null')`,
	"attempts": `eq(m:num_attempts(), 0) m:increment_num_attempts() m:increment_num_attempts() eq(m:num_attempts(), 2)`,
	"data": `eq(m:get_data():sub(-6), 'body\r\n') m:set_data('A: b\r\n\r\n\0x') eq(m:get_data(), 'A: b\r\n\r\n\0x')
			m:set_data('') eq(m:get_data(), '')`,
	"append_header": `m:append_header('X-New', 'value') eq(m:get_first_named_header_value('x-new'), 'value')
			local all = m:get_all_headers() eq(all[#all][1], 'X-New') eq(m:get_data():find('X%-New: value\r\n\r\nbody') ~= nil, true)`,
	"prepend_header": `m:prepend_header('X-New', 'value') eq(m:get_all_headers()[1][1], 'X-New')
			eq(m:get_data():sub(1, 14), 'X-New: value\r\n')`,
	"encode": `m:append_header('X-New', 'schöne grüße', true) eq(m:get_data():find('ö'), nil)
			eq(m:get_first_named_header_value('X-New'), 'schöne grüße')
			m:prepend_header('X-Line', 'a\r\nB: c', true) eq(m:get_first_named_header_value('B'), nil)`,
	"named values": `eq(m:get_first_named_header_value('subject'), 'grüße') eq(m:get_first_named_header_value('nope'), nil)
			list(m:get_all_named_header_values('X-Mixed-Case'), {'one', 'two'}) eq(#m:get_all_named_header_values('nope'), 0)
			eq(#m:get_all_headers(), 5) eq(m:get_all_headers()[2][2], 'grüße')`,
	"remove": `m:remove_all_named_headers('X-MIXED-CASE') eq(#m:get_all_headers(), 3) m:remove_all_named_headers('nope')
			eq(#m:get_all_headers(), 3)`,
	"remove_x_headers":        `m:remove_x_headers() eq(#m:get_all_headers(), 2) eq(m:get_data():sub(-8), '\r\nbody\r\n')`,
	"remove_x_headers listed": `m:remove_x_headers({'subject', 'x-tenant'}) eq(#m:get_all_headers(), 3)`,
	"remove_x_headers none":   `m:remove_x_headers({}) eq(#m:get_all_headers(), 5)`,
	"import_x_headers": `m:import_x_headers() eq(m:get_meta('x_tenant'), 'acme') eq(m:get_meta('x_mixed_case'), 'two')
			eq(m:get_meta('subject'), nil)`,
	"import_x_headers listed": `m:import_x_headers({'Subject'}) eq(m:get_meta('subject'), 'grüße') eq(m:get_meta('x_tenant'), nil)`,
	"save and shrink": `m:set_meta('x_k', 'v') m:save() m:shrink_data() m:shrink() eq(m:get_meta('x_k'), 'v')
			eq(m:get_data():sub(-6), 'body\r\n')`,
	"set_due": `eq(m:set_due('2040-01-31T08:00:00+01:00'), '2040-01-31T07:00:00Z')`,
	"SQ-25 set_due keeps to the scheduling": `local s = m:set_scheduling({first_attempt = '2041-01-01T00:00:00Z'})
			eq(s.first_attempt, '2041-01-01T00:00:00Z') eq(s.expires, nil) eq(m:set_scheduling(s) ~= nil, true)
			eq(m:set_due('2040-01-31T08:00:00Z'), '2041-01-01T00:00:00Z')
			eq(m:set_scheduling(nil), nil) eq(m:set_due('2040-01-31T08:00:00Z'), '2040-01-31T08:00:00Z')`,
	"SQ-25 window": `m:set_scheduling({dow = 'Mon,Wed', tz = 'UTC', start = '09:00:00', ['end'] = '17:30:00'})
			eq(m:set_due('2040-01-31T08:00:00Z'), '2040-02-01T09:00:00Z')
			eq(m:set_due('2040-02-01T17:29:59Z'), '2040-02-01T17:29:59Z') eq(m:set_due('2040-02-01T17:30:00Z'), '2040-02-06T09:00:00Z')`,
}

func TestMessage(t *testing.T) {
	for name, body := range messageBodies {
		t.Run(name, func(t *testing.T) {
			if err := run(t, body, newMessage(t, newStore(), "user@to.example")); err != nil {
				t.Error(err)
			}
		})
	}
}

// Each body fails with an error that holds the line and all the texts.
func TestMessageErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want []string
	}{
		"set_meta function":    {`m:set_meta('x_f', print)`, []string{`set_meta "x_f"`, "cannot be stored as JSON"}},
		"set_meta NaN":         {`m:set_meta('x_f', {0/0})`, []string{"not finite"}},
		"set_meta bad UTF-8":   {`m:set_meta('x_f', '\255')`, []string{"not UTF-8"}},
		"set_meta bad key":     {`m:set_meta('', 1)`, []string{"key"}},
		"get_meta no key":      {`m:get_meta()`, []string{"#1 (key)", "message:get_meta", "string expected, got no value"}},
		"set_sender":           {`m:set_sender('nobody')`, []string{"#1 (address)", "no @"}},
		"set_sender number":    {`m:set_sender({})`, []string{"address expected, got table"}},
		"set_recipient null":   {`m:set_recipient('')`, []string{"null address"}},
		"set_recipient empty":  {`m:set_recipient({})`, []string{"set_recipient"}},
		"set_recipient number": {`m:set_recipient({5})`, []string{"an address"}},
		"queue_name":           {`m:set_meta('tenant', 5) m:queue_name()`, []string{`"tenant"`, "not a string"}},
		"header injection":     {`m:append_header('X-A', 'b\r\nBcc: c@d.example')`, []string{"bad header field"}},
		"header name":          {`m:prepend_header('X A', 'b')`, []string{"bad header field"}},
		"set_data nil":         {`m:set_data()`, []string{"#1 (payload)", "string expected"}},
		"set_due":              {`m:set_due('tomorrow')`, []string{"set_due", "tomorrow"}},
		"set_scheduling part":  {`m:set_scheduling({dow = 'Mon'})`, []string{"set_scheduling", "go together"}},
		"set_scheduling name":  {`m:set_scheduling({first_atempt = 'x'})`, []string{"first_atempt", "first_attempt"}},
		"set_scheduling zone": {`m:set_scheduling({dow='Mon', tz='Mars', start='01:00:00', ['end']='02:00:00'})`,
			[]string{"time zone"}},
		"set_scheduling clock": {`m:set_scheduling({dow='Mon', tz='UTC', start='1', ['end']='02:00:00'})`,
			[]string{"start", "HH:MM:SS"}},
		"not served": {`m:dkim_sign({})`, []string{"message:dkim_sign is not served yet"}},
		"misspelled": {`m:get_mata("x")`, []string{`has no method "get_mata"`}},
		"self":       {`m.get_meta({}, 'a')`, []string{"self", "message expected"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t, tc.body, newMessage(t, newStore(), "user@to.example"))
			wantError(t, err, append(tc.want, "policy.lua:9")...)
		})
	}
}

// Numbers keep their kind, so that 1 comes back from the spool as 1.
func TestMetaTypes(t *testing.T) {
	s := newStore()
	m := newMessage(t, s, "user@to.example")
	if err := run(t, `m:set_meta('i', 7) m:set_meta('f', 7.5) m:set_meta('l', {1, 2.5, 'x'}) m:save()`, m); err != nil {
		t.Fatal(err)
	}
	loaded, err := s.Load(t.Context(), m.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*mta.Message{m, loaded} {
		meta, err := m.Meta(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i, _ := meta.Get("i")
		f, _ := meta.Get("f")
		l, _ := meta.Get("l")
		list, _ := l.([]any)
		if i != int64(7) || f != 7.5 || len(list) != 3 || fmt.Sprint(list) != "[1 2.5 x]" {
			t.Errorf("%T %v, %T %v, %v", i, i, f, f, l)
		}
	}
}

func TestDue(t *testing.T) {
	m := newMessage(t, newStore(), "user@to.example")
	before := time.Now()
	if err := run(t, `m:set_due(nil)`, m); err != nil {
		t.Fatal(err)
	}
	if d := m.Due(); d.Before(before) || d.After(time.Now()) {
		t.Errorf("due %v", d)
	}
	if err := run(t, `m:set_scheduling({expires = '2040-01-01T00:00:00Z',
		dow = 'Tuesday', tz = 'Europe/Berlin', start = '09:00:00', ['end'] = '17:00:00'})`, m); err != nil {
		t.Fatal(err)
	}
	s := m.Scheduling()
	if s == nil || s.Window == nil || s.Expires.Year() != 2040 || s.Window.Days != 1<<time.Tuesday ||
		s.Window.Start != 9*3600 || s.Window.End != 17*3600 {
		t.Errorf("scheduling %+v", s)
	}
}

// A message without recipients has nil, not an empty list.
func TestNoRecipient(t *testing.T) {
	if err := run(t, `eq(m:recipient(), nil) eq(#m:recipient_list(), 0)`, newMessage(t, newStore())); err != nil {
		t.Error(err)
	}
}

// A peer does not choose how much metadata a message has.
func TestImportBounded(t *testing.T) {
	m := newMessage(t, newStore(), "a@b.example")
	var b strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&b, "X-%d: v\r\n", i)
	}
	m.SetData([]byte(b.String() + "\r\n"))
	wantError(t, run(t, `m:import_x_headers()`, m), "policy.lua:9", "over 1000")
	if meta, err := m.Meta(t.Context()); err != nil || meta.Len() != 0 {
		t.Errorf("%d keys, %v", meta.Len(), err)
	}
	if err := run(t, `m:import_x_headers({'X-1000'}) eq(m:get_meta('x_1000'), 'v')`, m); err != nil {
		t.Error(err)
	}
}

// Every declaration has a text that is one sentence.
func TestDocs(t *testing.T) {
	docs := script.Module{Name: "svc", Types: message.Types()}.Describe()
	if len(docs) < 30 {
		t.Fatalf("%d declarations", len(docs))
	}
	for _, d := range docs {
		if !strings.HasSuffix(d.Text, ".") || strings.Contains(d.Signature, "arg1") {
			t.Errorf("%s: %q, %q", d.Name, d.Signature, d.Text)
		}
	}
}
