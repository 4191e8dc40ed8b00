package mta

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/svc/spool"
)

// fill sets n keys of the usual kinds.
func fill(m *Meta, n int) {
	for i := range n {
		key := fmt.Sprint("x_key_", i)
		switch i % 5 {
		case 0:
			m.Set(key, int64(i*1000))
		case 1:
			m.Set(key, true)
		default:
			m.Set(key, "a value of a usual length")
		}
	}
}

func encode(t testing.TB, m *Message) []byte {
	t.Helper()
	b, err := appendMeta(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// everything is a message with something of each kind.
func everything(r *rig) *Message {
	m := r.New(Envelope{
		Sender:     Address{Local: "f\r\nrom", Domain: strings.Repeat("d", 200)},
		Recipients: []Address{{}, {"a", "b"}, {"ü\x00\xff", ""}, {strings.Repeat("x", 70000), "y"}},
	}, nil)
	m.SetScheduling(&Scheduling{
		FirstAttempt: time.Date(10_001, 2, 3, 4, 5, 6, 7, time.UTC), // JSON could not tell it
		Expires:      time.Unix(-5, 1).UTC(),
		Window:       &Window{Days: 0x3e, Zone: "Europe/Berlin", Start: 3600, End: 7200},
	})
	for k, v := range map[string]any{
		"": "", "s": "\x00\xff", "t": true, "f": false, "i": int64(math.MinInt64), "j": int64(math.MaxInt64), "d": -0.5,
		"a": []any{}, "m": map[string]any{},
		"deep": []any{nil, int64(3), 3.0, map[string]any{"\xff": []any{"x", map[string]any{"": false}}}},
	} {
		m.meta.Set(k, v)
	}
	return m
}

func TestCodecRoundTrip(t *testing.T) {
	r := newRig(t)
	bare := r.New(Envelope{}, nil)
	for _, m := range []*Message{everything(r), bare, r.New(envelope, nil)} {
		b := encode(t, m)
		rec, err := decodeMeta(m.id, b)
		if err != nil {
			t.Fatal(err)
		}
		if rec.env.Sender != m.env.Sender || !slicesEqual(rec.env.Recipients, m.env.Recipients) {
			t.Errorf("envelope %+v", rec.env)
		}
		if !reflect.DeepEqual(rec.sched, m.sched) {
			t.Errorf("scheduling %+v, want %+v", rec.sched, m.sched)
		}
		if !reflect.DeepEqual(rec.meta.Map(), m.meta.Map()) {
			t.Errorf("metadata %#v, want %#v", rec.meta.Map(), m.meta.Map())
		}
		only, err := decodeOnlyMeta(m.id, b)
		if err != nil || !reflect.DeepEqual(only, rec.meta) {
			t.Errorf("metadata alone: %+v, %v", only, err)
		}
	}
}

func slicesEqual(a, b []Address) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// What is of no type of a Meta comes back as its JSON, and what has none is refused before anything is written.
func TestCodecForeignValues(t *testing.T) {
	r := newRig(t)
	m := r.New(Envelope{}, nil)
	m.meta.Set("list", []string{"a", "b"})
	m.meta.Set("int", 7)
	rec, err := decodeMeta(m.id, encode(t, m))
	if err != nil || !reflect.DeepEqual(rec.meta.Map(), map[string]any{"list": []any{"a", "b"}, "int": 7.0}) {
		t.Errorf("%#v, %v", rec.meta, err)
	}
	deep := any("bottom")
	for range maxMetaDepth {
		deep = []any{deep}
	}
	m.meta.Set("deep", deep)
	if _, err := decodeMeta(m.id, encode(t, m)); err != nil || CheckMetaValue(deep) != nil {
		t.Errorf("the deepest allowed: %v", err)
	}
	for _, bad := range []any{[]any{deep}, make(chan int), math.Inf(1), []any{math.NaN()}} {
		if CheckMetaValue(bad) == nil {
			t.Errorf("CheckMetaValue takes %v", bad)
		}
	}
	for _, bad := range []any{[]any{deep}, make(chan int)} {
		m.meta.Set("deep", bad)
		if err := m.Save(t.Context()); err == nil || m.Spooled() || r.data.Len()+r.meta.Len() != 0 {
			t.Errorf("Save of %T: %v", bad, err)
		}
	}
}

func TestCodecDamage(t *testing.T) {
	m := everything(newRig(t))
	m.env.Recipients = m.env.Recipients[:3]
	b := encode(t, m)
	var corrupt *spool.CorruptError
	for i := range b {
		if _, err := decodeMeta(m.id, b[:i]); !errors.As(err, &corrupt) || corrupt.ID != m.id {
			t.Fatalf("cut to %d of %d bytes: %v", i, len(b), err)
		}
	}
	if _, err := decodeMeta(m.id, append(bytes.Clone(b), 0)); !errors.As(err, &corrupt) {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := decodeMeta(spool.NewIDs().Next(), b); !errors.As(err, &corrupt) {
		t.Errorf("another's record: %v", err)
	}
	frame := spool.AppendFrame(nil, b)
	for i := range b {
		for _, flip := range []byte{1, 0x80, 0xff} {
			c := bytes.Clone(b)
			c[i] ^= flip
			rec, err := decodeMeta(m.id, c)
			if err != nil && (!errors.As(err, &corrupt) || rec.meta != nil) {
				t.Fatalf("byte %d: %v", i, err)
			}
			f := bytes.Clone(frame)
			f[spool.HeaderSize+i] ^= flip
			if _, err := spool.ParseFrame(f); err == nil {
				t.Fatalf("S3 byte %d passed the frame", i)
			}
		}
	}
}

// Records that claim much are refused without believing them.
func TestCodecClaims(t *testing.T) {
	id := spool.NewIDs().Next()
	head := append([]byte{metaVersion}, id[:]...)
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	over := bytes.Repeat([]byte{0xff}, 11)
	many := []byte{0xff, 0xff, 0xff, 0x07} // 16 million
	for name, body := range map[string][]byte{
		"envelope":      huge,
		"envelope over": over,
		"recipients":    append([]byte{2 + 9, 0, 0}, huge...),
		"recipients 2":  append([]byte{2 + 4, 0, 0}, many...),
		"zone":          append([]byte{3, 0, 0, 0, schedWindow, 1}, huge...),
		"time":          {3, 0, 0, 0, schedFirst, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0},
		"scheduling":    {3, 0, 0, 0, 8, 0},
		"entries":       append([]byte{3, 0, 0, 0, 0}, huge...),
		"key":           append([]byte{3, 0, 0, 0, 0, 1}, huge...),
		"array":         append([]byte{3, 0, 0, 0, 0, 1, 0, 'a'}, many...),
		"nested":        append([]byte{3, 0, 0, 0, 0, 1, 0}, bytes.Repeat([]byte{'a', 1}, 1e6)...),
		"nested claims": slices.Concat([]byte{3, 0, 0, 0, 0, 1, 0}, bytes.Repeat([]byte{'a', 0xc0, 0x84, 0x3d}, 30),
			[]byte{'z'}, make([]byte, 1_100_000)), // a million elements in each of 30 lists
		"map":  append([]byte{3, 0, 0, 0, 0, 1, 0, 'm'}, many...),
		"json": {3, 0, 0, 0, 0, 1, 0, 'j', 1, '{'},
		"type": {3, 0, 0, 0, 0, 1, 0, 'z'},
	} {
		b := append(bytes.Clone(head), body...)
		if _, used, err := decodeCounted(id, b); err == nil || used > 1<<20+uint64(4*len(b)) {
			t.Errorf("%s: %v, %d bytes allocated", name, err, used)
		}
	}
}

// decodeCounted tells what decoding allocated.
func decodeCounted(id spool.ID, b []byte) (metaRecord, uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := decodeMeta(id, b)
	runtime.ReadMemStats(&after)
	return r, after.TotalAlloc - before.TotalAlloc, err
}

func FuzzDecodeMeta(f *testing.F) {
	r := newRig(f)
	id := spool.ID{1, 2, 3, 4, 5, 6, 0x17, 8, 9}
	for _, m := range []*Message{r.New(envelope, nil), everything(r)} {
		m.env.Recipients = m.env.Recipients[:2]
		f.Add(encode(f, m)[17:])
	}
	f.Add([]byte{3, 0, 0, 0, 0, 1, 0, 'a', 2, 'a', 1, 'n', 'm', 1, 0, 'n'})
	f.Fuzz(func(t *testing.T, body []byte) {
		b := append(append([]byte{metaVersion}, id[:]...), body...)
		rec, err := decodeMeta(id, b)
		only, onlyErr := decodeOnlyMeta(id, b)
		if err != nil {
			var corrupt *spool.CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("%v is no CorruptError", err)
			}
			return
		}
		if onlyErr != nil || only.Len() != rec.meta.Len() {
			t.Fatalf("alone: %v", onlyErr)
		}
		m := &Message{id: id, env: rec.env, sched: rec.sched, meta: rec.meta}
		again, err := decodeMeta(id, encode(t, m))
		if err != nil {
			t.Fatalf("what was decoded cannot be read again: %v", err)
		}
		if !slicesEqual(again.env.Recipients, rec.env.Recipients) || again.env.Sender != rec.env.Sender ||
			!reflect.DeepEqual(again.sched, rec.sched) ||
			fmt.Sprintf("%#v", again.meta.Map()) != fmt.Sprintf("%#v", rec.meta.Map()) { // NaN equals itself here
			t.Fatalf("%+v became %+v", rec, again)
		}
	})
}

func BenchmarkAppendMeta(b *testing.B) {
	m := newRig(b).New(envelope, nil)
	fill(m.meta, 10)
	buf := encode(b, m)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = appendMeta(buf[:0], m)
	}
}

func BenchmarkDecodeMeta(b *testing.B) {
	m := newRig(b).New(envelope, nil)
	fill(m.meta, 10)
	buf := encode(b, m)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeMeta(m.id, buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSaveRemove(b *testing.B) {
	r, ctx := newRig(b), b.Context()
	data := make([]byte, 10<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		m := r.New(envelope, data)
		fill(m.meta, 3)
		if err := r.SaveAll(ctx, m); err != nil {
			b.Fatal(err)
		}
		if err := r.Remove(ctx, m); err != nil {
			b.Fatal(err)
		}
		m.Release()
	}
}
