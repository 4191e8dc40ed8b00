package smtpc

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"example.com/svc/egress"
	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
)

// transaction is the message being sent. It is reused.
type transaction struct {
	out    *egress.Outcome
	rs     []mta.Address
	state  []recipientState
	asked  []recipientState // state when the commands were written
	body   []byte
	traits mta.Traits
	mail   []byte // the MAIL command
}

// recipientState is how far a recipient got.
type recipientState uint8

const (
	waiting  recipientState = iota // no answer to RCPT yet
	accepted                       // RCPT was accepted
	answered                       // has its final answer
)

// Deliver sends m to rs. See [egress.Carrier].
func (k *conn) Deliver(ctx context.Context, m *mta.Message, rs []mta.Address, out *egress.Outcome) error {
	k.watch(ctx)
	body, err := m.Data(ctx)
	if err != nil {
		return err
	}
	t := &k.tx
	t.out, t.rs, t.body, t.traits = out, rs, body, m.Traits()
	t.state = append(t.state[:0], make([]recipientState, len(rs))...)
	defer func() { t.out, t.rs, t.body = nil, nil, nil }()
	if !k.prepare(m.Envelope().Sender) {
		return nil
	}
	k.writeTimeout = k.c.MailFromTimeout.D()
	if k.pipelining {
		k.pipelined()
	} else {
		k.stepwise()
	}
	return nil
}

// prepare checks what the peer cannot take, and makes the MAIL command. False when nothing is left to send.
func (k *conn) prepare(sender mta.Address) bool {
	t := &k.tx
	eight := t.traits&mta.Has8Bit != 0
	if t.traits&mta.TraitsKnown == 0 {
		eight = mta.HighBit(t.body)
	}
	size := int64(len(t.body))
	switch {
	case k.maxSize > 0 && size > k.maxSize: // RFC 1870 section 6.1
		k.local(552, 5, 3, 4, fmt.Sprintf("the message has %d bytes, the peer takes up to %d", size, k.maxSize))
		return false
	case eight && !k.eightBit && !k.c.Ignore8Bit: // flows SC-15
		k.local(554, 5, 6, 3, "the message has 8-bit content and the peer does not offer 8BITMIME")
		return false
	}
	utf8 := !sender.IsASCII()
	for i := range t.rs {
		if t.rs[i].IsASCII() {
			continue
		}
		if !k.utf8 && !k.c.Ignore8Bit {
			k.localOne(i, 554, 5, 6, 7, "the address is not ASCII and the peer does not offer SMTPUTF8")
			continue
		}
		utf8 = true
	}
	if utf8 && !k.utf8 && !k.c.Ignore8Bit {
		k.local(554, 5, 6, 7, "the sender is not ASCII and the peer does not offer SMTPUTF8")
		return false
	}
	for i := range t.rs {
		if t.state[i] == waiting && unsafeAddress(t.rs[i]) {
			k.localOne(i, 501, 5, 1, 3, "the recipient holds a line break")
		}
	}
	if unsafeAddress(sender) {
		k.local(501, 5, 1, 7, "the sender holds a line break")
		return false
	}
	b := smtp.AppendPath(append(t.mail[:0], "MAIL FROM:"...), sender)
	if k.sizes { // RFC 1870 section 5
		b = strconv.AppendInt(append(b, " SIZE="...), size, 10)
	}
	if eight && k.eightBit { // RFC 6152
		b = append(b, " BODY=8BITMIME"...)
	}
	if utf8 && k.utf8 { // RFC 6531 section 3.4
		b = append(b, " SMTPUTF8"...)
	}
	t.mail = b
	return t.left() > 0
}

// unsafeAddress reports whether a holds what would end a line: it did not come from mta.ParseAddress.
func unsafeAddress(a mta.Address) bool {
	return unsafeAt(a.Local) >= 0 && hasBreak(a.Local) || unsafeAt(a.Domain) >= 0 && hasBreak(a.Domain)
}

func hasBreak(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '\r' || s[i] == '\n' || s[i] == 0 {
			return true
		}
	}
	return false
}

// left counts the recipients without a final answer.
func (t *transaction) left() int {
	n := 0
	for _, s := range t.state {
		if s != answered {
			n++
		}
	}
	return n
}

// rest returns the recipients without a final answer that got at least as far as from, marks them as answered, and
// returns the place of the first.
func (t *transaction) rest(from recipientState) (rs []mta.Address, first int) {
	n := 0
	first = -1
	for i, s := range t.state {
		if s != answered && s >= from {
			if first < 0 {
				first = i
			}
			n++
		}
	}
	if n == len(t.rs) {
		rs = t.rs
	} else {
		rs = make([]mta.Address, 0, n)
	}
	for i, s := range t.state {
		if s != answered && s >= from {
			if n < len(t.rs) {
				rs = append(rs, t.rs[i])
			}
			t.state[i] = answered
		}
	}
	return rs, max(first, 0)
}

// answer gives r to all recipients without a final answer.
func (k *conn) answer(stage egress.Stage, r mta.Response) {
	rs, first := k.tx.rest(waiting)
	k.tx.out.Add(stage, first, rs, r)
}

func (k *conn) local(code int, class, subject, detail uint16, text string) {
	k.answer(egress.StageLocal, mta.Internal(code, mta.EnhancedCode{Class: class, Subject: subject, Detail: detail}, text))
}

func (k *conn) localOne(i, code int, class, subject, detail uint16, text string) {
	k.one(egress.StageLocal, i, mta.Internal(code, mta.EnhancedCode{Class: class, Subject: subject, Detail: detail}, text))
}

// one gives r to the recipient at i.
func (k *conn) one(stage egress.Stage, i int, r mta.Response) {
	k.tx.state[i] = answered
	k.tx.out.Add(stage, i, k.tx.rs[i:i+1:i+1], r)
}

// needsReset says whether RSET has to come first (flows SC-16).
func (k *conn) needsReset() bool { return k.unclean || k.used && k.c.EnableRset }

// writeCommand adds one command to the buffer; errors come with Flush.
func (k *conn) writeCommand(b []byte) {
	_, _ = k.w.Write(b)
	_, _ = k.w.Write(crlf)
}

var (
	crlf    = []byte("\r\n")
	rset    = []byte("RSET")
	data    = []byte("DATA")
	loneDot = []byte(".\r\n")
)

// rcptLine is the RCPT command for a recipient, in scratch space.
func (k *conn) rcptLine(i int) []byte {
	k.line = smtp.AppendPath(append(k.line[:0], "RCPT TO:"...), k.tx.rs[i])
	return k.line
}

// pipelined sends all commands in one write (RFC 2920 section 3.1) and reads their replies.
func (k *conn) pipelined() {
	t := &k.tx
	reset := k.needsReset()
	k.used, k.unclean = true, true
	if reset {
		k.writeCommand(rset)
	}
	k.writeCommand(t.mail)
	for i := range t.rs {
		if t.state[i] == waiting {
			k.writeCommand(k.rcptLine(i))
		}
	}
	k.writeCommand(data)
	if err := k.w.Flush(); err != nil {
		k.failed("MAIL FROM", k.writeTimeout, err)
		return
	}
	if reset && !k.resetDone() {
		return
	}
	t.asked = append(t.asked[:0], t.state...)
	mailOK, live := k.mailDone()
	for i := 0; live && i < len(t.rs); i++ {
		if t.asked[i] == waiting {
			live = k.rcptDone(i, !mailOK)
		}
	}
	if !live {
		return
	}
	wanted := mailOK && t.left() > 0
	ok, live := k.dataDone(wanted)
	switch {
	case !ok || !live:
	case !wanted:
		k.emptyData()
	default:
		k.content()
	}
}

// emptyData answers a 354 that came although nobody was accepted: a lone dot, whose reply does not count (flows SC-17,
// RFC 2920 section 3.1).
func (k *conn) emptyData() {
	_, _ = k.w.Write(loneDot)
	if err := k.w.Flush(); err != nil {
		k.failed("the end of nothing", k.writeTimeout, err)
		return
	}
	d := k.c.DataDotTimeout.D()
	rep, err := k.reply(d)
	if err != nil {
		k.failed("the end of nothing", d, err)
		return
	}
	k.closing(&rep)
}

// stepwise sends each command after the reply to the one before.
func (k *conn) stepwise() {
	t := &k.tx
	if k.needsReset() {
		if !k.send("RSET", rset) || !k.resetDone() {
			return
		}
	}
	k.used, k.unclean = true, true
	if !k.send("MAIL FROM", t.mail) {
		return
	}
	if ok, live := k.mailDone(); !ok || !live {
		return
	}
	for i := range t.rs {
		if t.state[i] != waiting {
			continue
		}
		if !k.send("RCPT TO", k.rcptLine(i)) || !k.rcptDone(i, false) {
			return
		}
	}
	if t.left() == 0 || !k.send("DATA", data) {
		return
	}
	if ok, live := k.dataDone(true); ok && live {
		k.content()
	}
}

// send writes one command at once.
func (k *conn) send(step string, b []byte) bool {
	k.writeCommand(b)
	if err := k.w.Flush(); err != nil {
		k.failed(step, k.writeTimeout, err)
		return false
	}
	return true
}

// content sends the content and its end, and reads the answer that counts.
func (k *conn) content() {
	t := &k.tx
	k.writeTimeout = k.c.DataTimeout.D()
	write := k.w.WriteData
	if t.traits&mta.TraitsKnown != 0 && t.traits&mta.PlainLines != 0 {
		write = k.w.WritePlain
	}
	err := write(t.body)
	if err == nil {
		err = k.w.Flush()
	}
	if err != nil {
		k.cutOff(err)
		return
	}
	d := k.c.DataDotTimeout.D()
	rep, err := k.reply(d)
	switch {
	case err != nil:
		k.failed("the end of the content", d, err)
		return
	case rep.Code/100 == 3:
		k.outOfStep("the end of the content", &rep)
		return
	case rep.Code/100 == 2:
		k.unclean = false
	}
	k.closing(&rep)
	k.answer(egress.StageDot, response(&rep, "."))
}

// cutOff deals with a peer that stopped taking the content. It may have said why.
func (k *conn) cutOff(err error) {
	if !isTimeout(err) && k.ctx.Err() == nil {
		if rep, rerr := k.reply(time.Second); rerr == nil && rep.Code >= 400 {
			k.broken, k.tx.out.Broken = true, true
			k.answer(egress.StageDot, response(&rep, "."))
			return
		}
	}
	k.failed("the content", k.writeTimeout, err)
}
