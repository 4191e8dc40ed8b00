package smtpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"example.com/svc/egress"
	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
)

// failed ends the transaction for all without an answer, and the connection, because of err while a step was awaited
// (flows SC-21).
func (k *conn) failed(step string, d time.Duration, err error) {
	k.broken, k.tx.out.Broken = true, true
	switch {
	case isTimeout(err) && k.ctx.Err() == nil:
		k.local(421, 4, 4, 2, fmt.Sprintf("Timed Out waiting %s for the answer to %s", d, step))
		return
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("connection closed by the peer")
	case k.ctx.Err() != nil:
		err = context.Cause(k.ctx)
	}
	k.tx.out.Transport = true
	k.answer(egress.StageLocal, mta.Internal(400, mta.EnhancedCode{}, step+": "+safe(clip(err.Error()))))
}

// outOfStep ends the connection because of a code that cannot answer step (C1).
func (k *conn) outOfStep(step string, rep *smtp.Reply) {
	k.failed(step, 0, fmt.Errorf("unexpected reply %s", clip(response(rep, "").String())))
}

// closing notes a 421, after which the peer closes (RFC 5321 section 3.8).
func (k *conn) closing(rep *smtp.Reply) bool {
	if rep.Code != 421 {
		return false
	}
	k.broken, k.tx.out.Broken = true, true
	return true
}

// resetDone reads the reply to RSET.
func (k *conn) resetDone() bool {
	d := k.c.RsetTimeout.D()
	rep, err := k.reply(d)
	switch {
	case err != nil:
		k.failed("RSET", d, err)
		return false
	case k.closing(&rep):
		k.answer(egress.StageMail, response(&rep, "RSET"))
		return false
	case rep.Code/100 != 2:
		k.outOfStep("RSET", &rep)
		return false
	}
	return true
}

// mailDone reads the reply to MAIL. ok says that the sender was accepted; live, that the connection goes on.
func (k *conn) mailDone() (ok, live bool) {
	d := k.c.MailFromTimeout.D()
	rep, err := k.reply(d)
	switch {
	case err != nil:
		k.failed("MAIL FROM", d, err)
		return false, false
	case rep.Code/100 == 2:
		return true, true
	case rep.Code/100 == 3:
		k.outOfStep("MAIL FROM", &rep)
		return false, false
	}
	live = !k.closing(&rep)
	k.answer(egress.StageMail, response(&rep, string(k.tx.mail)))
	return false, live
}

// rcptDone reads the reply to RCPT for the recipient at i; with ignore it has its answer already. Every positive reply
// accepts (RFC 5321 section 4.2.1), 251 included.
func (k *conn) rcptDone(i int, ignore bool) (live bool) {
	d := k.c.RcptToTimeout.D()
	rep, err := k.reply(d)
	switch {
	case err != nil:
		k.failed("RCPT TO", d, err)
		return false
	case rep.Code/100 == 3:
		k.outOfStep("RCPT TO", &rep)
		return false
	case k.closing(&rep):
		if !ignore {
			k.answer(egress.StageRcpt, response(&rep, string(k.rcptLine(i))))
		}
		return false
	case ignore:
	case rep.Code/100 == 2:
		k.tx.state[i] = accepted
	default:
		k.one(egress.StageRcpt, i, response(&rep, string(k.rcptLine(i))))
	}
	return true
}

// dataDone reads the reply to DATA. wanted says that there are accepted recipients.
func (k *conn) dataDone(wanted bool) (ok, live bool) {
	d := k.c.DataTimeout.D()
	rep, err := k.reply(d)
	switch {
	case err != nil:
		k.failed("DATA", d, err)
		return false, false
	case rep.Code == 354:
		return true, true
	case rep.Code < 400:
		k.outOfStep("DATA", &rep) // a positive reply here is no delivery (E4 of package egress)
		return false, false
	}
	live = !k.closing(&rep)
	if wanted {
		k.answer(egress.StageData, response(&rep, "DATA"))
	}
	return false, live
}
