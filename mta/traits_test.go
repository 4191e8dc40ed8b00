package mta

import (
	"testing"

	"example.com/svc/spool/memory"
)

func TestTraits(t *testing.T) {
	const all = TraitsKnown | PlainLines
	store := NewStore(memory.New(), memory.New(), nil, nil)
	for _, tc := range []struct {
		header string
		want   Traits
	}{
		{"A: b\r\n", all}, {"A: b\r\n c\r\nD: e\r\n", all}, {"A: \xc3\xa9\r\n", all | Has8Bit}, {".A: b\r\n", TraitsKnown},
		{"A: b\r\n.c\r\n", TraitsKnown}, {"A: b\n", TraitsKnown}, {"A: b\rc\r\n", TraitsKnown}, {"A: b", TraitsKnown},
	} {
		m := store.New(Envelope{}, []byte("X: y\r\n\r\nbody\r\n"))
		m.SetTraits(all)
		if err := m.Prepend(t.Context(), []byte(tc.header)); err != nil {
			t.Fatal(err)
		}
		if m.Traits() != tc.want {
			t.Errorf("after %q the traits are %b, want %b", tc.header, m.Traits(), tc.want)
		}
	}
	m := store.New(Envelope{}, []byte("body\r\n"))
	if err := m.Prepend(t.Context(), []byte("A: b\r\n")); err != nil || m.Traits() != 0 {
		t.Errorf("unknown traits became %b, %v", m.Traits(), err)
	}
	m.SetTraits(all)
	if err := m.Shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Data(t.Context()); err != nil || m.Traits() != all {
		t.Errorf("after shrinking and loading the traits are %b, %v", m.Traits(), err)
	}
	c, err := store.Split(t.Context(), m, nil)
	if err != nil || c.Traits() != all {
		t.Errorf("a split message has the traits %b, %v", c.Traits(), err)
	}
	m.SetData([]byte("other"))
	if m.Traits() != 0 {
		t.Errorf("new content has the traits %b", m.Traits())
	}
}

func TestHighBit(t *testing.T) {
	for n := range 100 {
		b := make([]byte, n)
		if HighBit(b) {
			t.Errorf("%d bytes below 0x80", n)
		}
		for i := range b {
			b[i] = 0x80
			if !HighBit(b) {
				t.Errorf("byte %d of %d", i, n)
			}
			b[i] = 0x7f
		}
	}
}
