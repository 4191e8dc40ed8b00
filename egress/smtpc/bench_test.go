package smtpc

import (
	"bytes"
	"strings"
	"testing"

	"example.com/svc/egress"
	"example.com/svc/mta"
)

// BenchmarkDeliver10KB sends one message over a kept connection to a peer in memory that accepts everything.
func BenchmarkDeliver10KB(b *testing.B) {
	k, err := open(b, testConfig(), func(p *peer) {
		p.ready(pipe, "8BITMIME", "SIZE 0")
		buf := make([]byte, 64<<10)
		head, content := []byte("DATA\r\n"), []byte("\r\n.\r\n")
		var have []byte
		first := true
		replies := [2]string{"250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n", "250 2.0.0 queued\r\n"}
		step := 0
		for {
			n, err := p.br.Read(buf)
			if err != nil {
				return
			}
			have = append(have, buf[:n]...)
			if step == 0 && bytes.HasSuffix(have, head) || step == 1 && bytes.HasSuffix(have, content) {
				r := replies[step]
				if first && step == 0 {
					r, first = r[len("250 ok\r\n"):], false // no RSET before the first
				}
				p.say(r)
				step, have = 1-step, have[:0]
			} else if bytes.HasSuffix(have, []byte("QUIT\r\n")) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	rs := addrs("a@example.com")
	body := strings.Repeat(strings.Repeat("x", 76)+"\r\n", 10240/78)
	m := testStore().New(mta.Envelope{Sender: addr("s@example.org"), Recipients: rs}, []byte(body))
	var out egress.Outcome
	ctx := b.Context()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		if err := k.Deliver(ctx, m, rs, &out); err != nil || out.Broken || out.Replies[0].Response.Code != 250 {
			b.Fatal(err, text(&out))
		}
	}
}
