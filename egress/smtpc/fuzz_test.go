package smtpc

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/svc/egress"
)

// FuzzPeer lets a peer say anything, greeting included: no panic, every recipient answered, nothing delivered without a
// positive reply, safe text.
func FuzzPeer(f *testing.F) {
	f.Add("220 x\r\n250-x\r\n250 PIPELINING\r\n250 a\r\n250 a\r\n250 a\r\n354 go\r\n250 done\r\n")
	f.Add("220 x\r\n250 x\r\n550 a\x00\x1b\xff\r\n")
	f.Add("220-\r\n220 \r\n250-SIZE 1\r\n250 8BITMIME\r\n421\r\n")
	f.Fuzz(func(t *testing.T, said string) {
		k, err := open(t, testConfig(func(c *egress.PathConfig) { c.EnableTLS = egress.TLSDisabled }), func(p *peer) {
			done := make(chan struct{})
			go func() { defer close(done); _, _ = io.Copy(io.Discard, p.br) }()
			p.say(said)
			p.Close()
			<-done
		})
		if err != nil {
			return
		}
		for _, r := range outcome(t, k, testBody).Replies {
			if r.Response.Code == 250 && !strings.Contains(said, "354") {
				t.Errorf("E4: delivered by %q", said)
			}
			if c := r.Response.Content; !utf8.ValidString(c) || strings.ContainsAny(c, "\x00\x1b\r") {
				t.Errorf("C3: %q", c)
			}
		}
	})
}

func TestSafeText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\nlines": "plain\nlines", "é": "é", "\x1b[2J": `\x1b[2J`, "a\x00b": `a\x00b`, "\xff": `\xff`, "\u0085": `\xc2\x85`,
		"\x7f": `\x7f`, "\t": `\x09`,
	} {
		if got := safe(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
