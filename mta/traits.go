package mta

import (
	"bytes"
	"encoding/binary"
)

// Traits are what is known about the content of a message without looking at it again. They live in memory only: a
// message that comes back from the spool of an earlier process has none.
type Traits uint8

const (
	// TraitsKnown says that the other traits were found by looking; without it they mean nothing.
	TraitsKnown Traits = 1 << iota
	// Has8Bit says that some byte has its high bit set.
	Has8Bit
	// PlainLines says that every CR and LF is part of a CRLF, that no line begins with a dot, and that the last line
	// has its CRLF: the content goes over SMTP as it is.
	PlainLines
)

// Traits returns what is known about the content, 0 for nothing.
func (m *Message) Traits() Traits { return m.traits }

// SetTraits keeps what the caller found out about the content. Changing the content makes the message forget it.
func (m *Message) SetTraits(t Traits) { m.traits = t }

// withHeader returns the traits of content with known traits after header was put before it.
func (t Traits) withHeader(header []byte) Traits {
	if t&TraitsKnown == 0 {
		return 0
	}
	if !plainLines(header) {
		t &^= PlainLines
	}
	if HighBit(header) {
		t |= Has8Bit
	}
	return t
}

// HighBit reports whether some byte of b has its high bit set. It looks at 32 bytes at a time.
func HighBit(b []byte) bool {
	const high = 0x8080808080808080
	for len(b) >= 32 {
		v := binary.LittleEndian.Uint64(b) | binary.LittleEndian.Uint64(b[8:]) |
			binary.LittleEndian.Uint64(b[16:]) | binary.LittleEndian.Uint64(b[24:])
		if v&high != 0 {
			return true
		}
		b = b[32:]
	}
	var v byte
	for _, c := range b {
		v |= c
	}
	return v&0x80 != 0
}

// plainLines reports whether b consists of whole lines that need no care.
func plainLines(b []byte) bool {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 1 || b[i-1] != '\r' || b[0] == '.' || bytes.IndexByte(b[:i-1], '\r') >= 0 {
			return false
		}
		b = b[i+1:]
	}
	return true
}
