package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"example.com/svc/httpapi"
	"example.com/svc/httpapi/api"
	"example.com/svc/httpapi/inject"
	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/mail"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
	"example.com/svc/spool/memory"
)

// inbound keeps what was handed in.
type inbound struct {
	got  []*mta.Message
	fail map[string]error // by recipient
	// whole makes one failing message refuse the whole call, as a queue that cannot be resolved does.
	whole bool
}

func (in *inbound) Insert(_ context.Context, ms ...*mta.Message) error {
	failed := map[int]error{}
	for i, m := range ms {
		if err := in.fail[m.Envelope().Recipients[0].String()]; err != nil {
			failed[i] = err
			if in.whole {
				return &mta.InsertError{Err: err, Failed: failed}
			}
			continue
		}
		if in.whole {
			continue
		}
		in.got = append(in.got, m)
	}
	if in.whole {
		in.got = append(in.got, ms...)
	}
	if len(failed) > 0 {
		return &mta.InsertError{Failed: failed}
	}
	return nil
}

type fixture struct {
	in      *inbound
	bus     *event.Local
	refusal *mta.Refusal
	handler http.Handler
}

func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{in: &inbound{}, bus: new(event.Local)}
	set := metric.NewSet()
	store := mta.NewStore(memory.New(), memory.New(), set, nil)
	inj := inject.New(inject.Options{Bus: f.bus, Store: store, Inbound: f.in, Metrics: set, Product: "svc"})
	s, err := httpapi.New(settings.New(func(c *httpapi.Config) { c.Hostname = "mx.example" }), httpapi.Options{
		Bus: f.bus, Injector: inj, Metrics: set, Gate: func() *mta.Refusal { return f.refusal }})
	if err != nil {
		t.Fatal(err)
	}
	f.handler = s.Handler()
	return f
}

// do sends one request from peer and returns status and body.
func (f *fixture) do(peer, method, path, body string, header ...string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost:8000"
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(peer), 1234).String()
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

const simple = `{"envelope_sender":"a@x.example","recipients":[{"email":"b@y.example"},{"email":"c@y.example","metadata":{"k":[1,"v"]}}],
"content":"Subject: hi\nFrom: a@x.example\n\nline one\r\nline two\rline three\n"}`

func TestInject(t *testing.T) {
	f := setup(t)
	status, body := f.do("127.0.0.1", "POST", "/api/inject/v1", simple)
	var res api.InjectV1Response
	if err := json.Unmarshal([]byte(body), &res); err != nil || status != 200 || res.SuccessCount != 2 || res.FailCount != 0 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if !strings.Contains(body, `"failed_recipients":[]`) {
		t.Errorf("an empty list is null in %s", body)
	}
	m := f.in.got[1]
	data, _ := m.Data(t.Context())
	h := mail.Parse(data)
	if string(h.Body()) != "line one\r\nline two\r\nline three\r\n" {
		t.Errorf("HI-9 body is %q", h.Body())
	}
	for _, want := range []string{"MIME-Version", "Subject", "X-SvcRef"} {
		if h.Count(want) != 1 {
			t.Errorf("%d %s fields in %q", h.Count(want), want, data)
		}
	}
	meta, _ := m.Meta(t.Context())
	for key, want := range map[string]string{"http_auth": "127.0.0.1", "reception_protocol": "HTTP", "received_from": "127.0.0.1",
		"hostname": "mx.example"} {
		if meta.String(key) != want {
			t.Errorf("HI-10 meta %s is %q, want %q", key, meta.String(key), want)
		}
	}
	if v, _ := meta.Get("extra"); v == nil || v.(map[string]any)["k"] == nil {
		t.Errorf("HI-10 extra is %v", v)
	}
}

// HI-12: recipients are independent.
func TestInjectPartial(t *testing.T) {
	for _, whole := range []bool{false, true} {
		testInjectPartial(t, whole)
	}
}

func testInjectPartial(t *testing.T, whole bool) {
	f := setup(t)
	f.in.whole = whole
	f.in.fail = map[string]error{"b@y.example": errors.New("no room")}
	body := strings.Replace(simple, `{"email":"b@y.example"}`, `{"email":"b@y.example"},{"email":"not an address"}`, 1)
	status, out := f.do("127.0.0.1", "POST", "/api/inject/v1", body)
	var res api.InjectV1Response
	_ = json.Unmarshal([]byte(out), &res)
	if status != 200 || res.SuccessCount != 1 || res.FailCount != 2 || len(res.FailedRecipients) != 2 || len(res.Errors) != 2 ||
		len(f.in.got) != 1 {
		t.Fatalf("whole %v: %d %s, %d handed in", whole, status, out, len(f.in.got))
	}
}

// HI-11: the policy sees each message and can refuse it.
func TestInjectEvent(t *testing.T) {
	f := setup(t)
	err := inject.OnMessageGenerated.On(f.bus, func(ctx context.Context, a inject.MessageGenerated) (event.None, error) {
		if a.Message.Envelope().Recipients[0].Local == "b" {
			return event.None{}, mta.Reject(550, "no")
		}
		return event.None{}, a.Message.SetMeta(ctx, "tenant", "acme")
	})
	if err != nil {
		t.Fatal(err)
	}
	_, out := f.do("127.0.0.1", "POST", "/api/inject/v1", simple)
	if !strings.Contains(out, `"success_count":1,"fail_count":1`) || len(f.in.got) != 1 {
		t.Fatal(out)
	}
	if q, _ := f.in.got[0].Queue(t.Context()); q.String() != "acme@y.example" {
		t.Errorf("queue %s", q)
	}
}

func TestInjectObject(t *testing.T) {
	f := setup(t)
	body := `{"envelope_sender":"a@x.example","recipients":[{"email":"b@y.example","name":"Bé"}],"content":{"text_body":"grüße",
"html_body":"<p>x</p>","headers":{"X-A":"1","Subject":"other"},"from":{"email":"a@x.example","name":"A"},"subject":"sübject"}}`
	status, out := f.do("127.0.0.1", "POST", "/api/inject/v1", body)
	if status != 200 || len(f.in.got) != 1 {
		t.Fatalf("%d %s", status, out)
	}
	data, _ := f.in.got[0].Data(t.Context())
	h := mail.Parse(data)
	value := func(name string) string { fd, _ := h.First(name); return fd.Value() }
	if value("Subject") != "sübject" || h.Count("Subject") != 1 || value("To") != "Bé <b@y.example>" ||
		!strings.HasPrefix(value("Content-Type"), "multipart/alternative") || value("Date") == "" || value("X-A") != "1" {
		t.Errorf("built %s", data)
	}
	if !bytes.Contains(data, []byte("gr=C3=BC=C3=9Fe")) {
		t.Errorf("text part missing in %s", data)
	}
}

func TestRefusals(t *testing.T) {
	f := setup(t)
	for _, tc := range []struct {
		name, peer, method, path, body string
		header                         []string
		status                         int
		text                           string
	}{
		{name: "HT-4 inject needs trust", peer: "192.0.2.1", method: "POST", path: "/api/inject/v1", body: simple, status: 401, text: "not permitted"},
		{name: "HT-4 metrics need trust", peer: "192.0.2.1", method: "GET", path: "/metrics", status: 401},
		{name: "unknown path from outside", peer: "192.0.2.1", method: "GET", path: "/x", status: 401},
		{name: "unknown path", peer: "127.0.0.1", method: "GET", path: "/x", status: 404},
		{name: "wrong method", peer: "127.0.0.1", method: "PUT", path: "/metrics", status: 405},
		{name: "foreign host name", peer: "127.0.0.1", method: "GET", path: "/metrics", header: []string{"Host", "evil.example"}, status: 421},
		{name: "HT-2 bad scheme", peer: "127.0.0.1", method: "GET", path: "/metrics", header: []string{"Authorization", "Digest x"}, status: 400},
		{name: "HT-2 bad login from a trusted host", peer: "127.0.0.1", method: "GET", path: "/metrics", header: []string{"Authorization", "Basic dTpw"}, status: 401, text: "Authentication Failed for u"},
		{name: "content type", peer: "127.0.0.1", method: "POST", path: "/api/inject/v1", body: simple, header: []string{"Content-Type", "text/plain"}, status: 415},
		{name: "not JSON", peer: "127.0.0.1", method: "POST", path: "/api/inject/v1", body: "{", status: 400},
		{name: "deep JSON", peer: "127.0.0.1", method: "POST", path: "/api/inject/v1", body: strings.Repeat("[", 200_000), status: 400},
		{name: "unknown key", peer: "127.0.0.1", method: "POST", path: "/api/inject/v1", body: `{"envelope_sender":"","recipients":[],"content":"","bogus":1}`, status: 422, text: "bogus"},
		{name: "missing key", peer: "127.0.0.1", method: "POST", path: "/api/inject/v1", body: `{"envelope_sender":"","recipients":[]}`, status: 422, text: "content"},
		{name: "bad sender", peer: "127.0.0.1", method: "POST", path: "/api/inject/v1", body: `{"envelope_sender":"x","recipients":[],"content":"A: b\n\nx"}`, status: 500, text: "Error: envelope_sender"},
		{name: "template", peer: "127.0.0.1", method: "POST", path: "/api/inject/v1", body: `{"envelope_sender":"","recipients":[],"content":"A: {{ name }}\n\nx"}`, status: 422, text: "templates are not served yet"},
		{name: "header injection", peer: "127.0.0.1", method: "POST", path: "/api/inject/v1", body: `{"envelope_sender":"","recipients":[{"email":"b@y.example"}],"content":{"text_body":"x","headers":{"A:b":"x"}}}`, status: 422, text: "name"},
		{name: "too large", peer: "127.0.0.1", method: "POST", path: "/api/inject/v1", body: strings.Repeat(" ", 2<<20+1), status: 413, text: "length limit exceeded"},
		{name: "bad prefix", peer: "127.0.0.1", method: "GET", path: "/metrics?prefix=%0A", status: 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, body := f.do(tc.peer, tc.method, tc.path, tc.body, tc.header...)
			if status != tc.status || !strings.Contains(body, tc.text) {
				t.Errorf("%d %.200q, want %d with %q", status, body, tc.status, tc.text)
			}
		})
	}
	if len(f.in.got) != 0 {
		t.Errorf("%d messages went in", len(f.in.got))
	}
}

// HT-4, HT-5: an authenticated peer may inject; the policy is asked once per credentials.
func TestBasicAuth(t *testing.T) {
	f := setup(t)
	asked := 0
	err := httpapi.OnValidateBasic.On(f.bus, func(_ context.Context, a httpapi.BasicAuth) (bool, error) {
		asked++
		return a.User == "u" && a.Password == "p", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status, body := f.do("192.0.2.1", "POST", "/api/inject/v1", simple, "Authorization", "Basic dTpw"); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	if status, _ := f.do("192.0.2.1", "GET", "/metrics", "", "Authorization", "Basic dTpw"); status != 401 {
		t.Errorf("metrics for an authenticated peer: %d", status)
	}
	if status, _ := f.do("192.0.2.1", "POST", "/api/inject/v1", simple, "Authorization", "Basic dTpx"); status != 401 {
		t.Errorf("wrong password: %d", status)
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	meta, _ := f.in.got[0].Meta(t.Context())
	if meta.String("http_auth") != "u" {
		t.Errorf("HI-10 http_auth %q", meta.String("http_auth"))
	}
}

// HI-1 and liveness.
func TestGate(t *testing.T) {
	f := setup(t)
	if status, body := f.do("192.0.2.1", "GET", "/api/check-liveness/v1", ""); status != 200 || body != "OK" {
		t.Errorf("%d %s", status, body)
	}
	f.refusal = &mta.Refusal{Reason: "shutting down"}
	if status, body := f.do("192.0.2.1", "GET", "/api/check-liveness/v1", ""); status != 503 || body != "shutting down" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := f.do("127.0.0.1", "POST", "/api/inject/v1", simple); status != 503 || body != "Error: shutting down" {
		t.Errorf("%d %s", status, body)
	}
}

func TestCompressed(t *testing.T) {
	f := setup(t)
	zip := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, s)
		_ = w.Close()
		return b.String()
	}
	if status, body := f.do("127.0.0.1", "POST", "/api/inject/v1", zip(simple), "Content-Encoding", "gzip"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := f.do("127.0.0.1", "POST", "/api/inject/v1", zip(strings.Repeat(" ", 3<<20)), "Content-Encoding", "gzip"); status != 413 {
		t.Errorf("a bomb gives %d", status)
	}
	status, body := f.do("127.0.0.1", "GET", "/metrics", "", "Accept-Encoding", "gzip")
	zr, err := gzip.NewReader(strings.NewReader(body))
	if err != nil || status != 200 {
		t.Fatalf("%d %v", status, err)
	}
	if text, _ := io.ReadAll(zr); !bytes.Contains(text, []byte("total_messages_received")) {
		t.Errorf("metrics: %s", text)
	}
}

func FuzzInject(f *testing.F) {
	f.Add(simple)
	f.Add(`{"envelope_sender":"","recipients":[{"email":"b@y.example"}],"content":{"text_body":"x"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		fx := setup(t)
		status, out := fx.do("127.0.0.1", "POST", "/api/inject/v1", body)
		if status >= 500 && !strings.Contains(out, "envelope_sender") {
			t.Fatalf("%d %s", status, out)
		}
		for _, m := range fx.in.got {
			data, _ := m.Data(t.Context())
			if i := bytes.IndexByte(data, '\n'); i >= 0 && (i == 0 || data[i-1] != '\r') {
				t.Fatalf("bare LF in %q", data)
			}
		}
	})
}
