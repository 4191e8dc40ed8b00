package queue

import (
	"strings"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
)

func decode(t *testing.T, text string) (Config, error) {
	t.Helper()
	tree, err := settings.ParseJSON("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var c Config
	err = settings.Decode("make_queue_config", tree, &c)
	return c, err
}

func TestConfigDefaults(t *testing.T) {
	c, err := decode(t, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if c.EgressPool != "unspecified" || c.MaxAge != dur(7*24*time.Hour) || c.RetryInterval != dur(20*time.Minute) ||
		c.ReapInterval != dur(10*time.Minute) || c.RefreshInterval != dur(time.Minute) || c.RefreshStrategy != Ttl ||
		c.Strategy != SingletonTimerWheel || c.Protocol.SMTP == nil || c.MaxMessageRate != nil ||
		c.MaxRetryInterval != nil || len(c.ShrinkPolicy) != 0 {
		t.Errorf("%+v", c)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigDecode(t *testing.T) {
	c, err := decode(t, `{"egress_pool":"p","max_age":"3 days","max_message_rate":"100/s","max_retry_interval":"1h",
		"refresh_strategy":"Epoch","strategy":"SingletonTimerWheelV2",
		"shrink_policy":[{"interval":"1m","policy":"ShrinkData"}],
		"protocol":{"smtp":{"mx_list":["MX1.example.","mx2.example:2525","[192.0.2.1]:26","[IPv6:2001:db8::1]",
			{"name":"mx3.example","addr":"192.0.2.3:27"},{"name":"mx4.example","addr":"2001:db8::4"}],
			"treat_mx_list_as_secure":false}}}`)
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, h := range c.Protocol.SMTP.MXList {
		s := h.String()
		if h.Name != "" && h.Addr.IsValid() {
			s += "=" + h.Addr.String()
		}
		hosts = append(hosts, s)
	}
	want := "mx1.example mx2.example:2525 [192.0.2.1]:26 [2001:db8::1] mx3.example:27=192.0.2.3 mx4.example=2001:db8::4"
	if got := strings.Join(hosts, " "); got != want {
		t.Errorf("mx_list %s, want %s", got, want)
	}
	if c.Protocol.SMTP.TreatMXListAsSecure || c.MaxMessageRate == nil ||
		*c.MaxRetryInterval != dur(time.Hour) || c.ShrinkPolicy[0].Policy != ShrinkData {
		t.Errorf("%+v", c)
	}
	again, err := decode(t, func() string {
		text, err := settings.Encode(&c).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}())
	if err != nil || len(again.Protocol.SMTP.MXList) != len(hosts) ||
		again.Protocol.SMTP.MXList[4] != c.Protocol.SMTP.MXList[4] {
		t.Errorf("not the same after encoding: %+v, %v", again, err)
	}
}

func TestConfigRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"strategy":"TimerWheel"}`, "not served yet"},
		{`{"strategy":"SkipList"}`, "not served yet"},
		{`{"strategy":"Heap"}`, "strategy"},
		{`{"timerwheel_tick_interval":"1s"}`, "not served yet"},
		{`{"protocol":{"maildir_path":"/x"}}`, "not served yet"},
		{`{"protocol":{"custom_lua":{"constructor":"x"}}}`, "not served yet"},
		{`{"protocol":{"smtp":{"treat_mx_list_as_secure":true}}}`, "not served yet"},
		{`{"provider_name":"big"}`, "not served yet"},
		{`{"protocol":{"xfer":{"target":"http://x"}}}`, "not served yet"},
		{`{"max_age":"0s"}`, "max_age"},
		{`{"retry_interval":"0s"}`, "retry_interval"},
		{`{"max_retry_interval":"0s"}`, "max_retry_interval"},
		{`{"egress_pool":""}`, "egress_pool"},
		{`{"max_agee":"1s"}`, `did you mean "max_age"`},
		{`{"refresh_strategy":"ttl"}`, "refresh_strategy"},
		{`{"shrink_policy":[{"interval":"1s"}]}`, "policy"},
		{`{"protocol":{"smtp":{"mx_list":["a b"]}}}`, "mx_list"},
		{`{"protocol":{"smtp":{"mx_list":["a:0"]}}}`, "bad port"},
		{`{"protocol":{"smtp":{"mx_list":["a:70000"]}}}`, "bad port"},
		{`{"protocol":{"smtp":{"mx_list":["[192.0.2.1"]}}}`, "bracket"},
		{`{"protocol":{"smtp":{"mx_list":[{"name":"a"}]}}}`, "addr"},
		{`{"protocol":{"smtp":{"mx_list":[{"name":"a","addr":"b"}]}}}`, "bad address"},
		{`{"protocol":{"smtp":{"mx_list":[{"name":"a","addr":"192.0.2.1","port":1}]}}}`, "unknown key"},
		{`{"protocol":{"smtp":{"mx_list":[7]}}}`, "mx_list"},
	} {
		if _, err := decode(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestConfigOfGo(t *testing.T) {
	c := settings.New(func(c *Config) { c.Protocol = Protocol{} })
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "names no protocol") {
		t.Errorf("no protocol: %v", err)
	}
}

func TestInternalConfig(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"generator.svc.internal": 10 * time.Second, "node1.xfer.svc.internal": 10 * time.Second,
		"null": 10 * time.Second, "deferred_smtp_inject.svc.internal": time.Minute,
	} {
		c := internalConfig(mta.ParseQueueName(name))
		if c.backoff(0) != want || name == "null" && c.backoff(5) != want {
			t.Errorf("SQ-3 %s: %v, then %v", name, c.backoff(0), c.backoff(5))
		}
	}
}

func TestEventShapes(t *testing.T) {
	for name, mode := range map[string]event.Mode{"get_queue_config": event.Chain, "requeue_message": event.Chain,
		"throttle_insert_ready_queue": event.Chain, "spool_message_enumerated": event.Single} {
		if d, ok := event.Lookup(name); !ok || d.Mode != mode {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func FuzzMXHost(f *testing.F) {
	for _, s := range []string{"a", "a.b:25", "[192.0.2.1]:25", "[::1]", "[IPv6:::1]", ":", "[]", "a:", "é.example"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var h MXHost
		if err := h.UnmarshalText([]byte(s)); err != nil {
			if h != (MXHost{}) {
				t.Fatal("changed by an error")
			}
			return
		}
		var again MXHost
		if err := again.UnmarshalText([]byte(h.String())); err != nil || again != h {
			t.Fatalf("%q reads as %+v, its text %q as %+v, %v", s, h, h.String(), again, err)
		}
	})
}
