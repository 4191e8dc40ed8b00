package spool

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// ID names a value: a UUID of version 1, which carries the time it was made in
// units of 100 ns (RFC 9562 section 5.1). Its text is 32 lower-case hexadecimal
// digits. The zero ID names nothing.
type ID [16]byte

// gregorianTicks is the number of 100 ns units from 1582-10-15 to 1970-01-01
// (RFC 9562 section 5.1).
const gregorianTicks = 122192928000000000

// ticksPerSecond is the number of 100 ns units in a second.
const ticksPerSecond = 10_000_000

// maxTicks is the largest timestamp of 60 bits.
const maxTicks = 1<<60 - 1

var errIDText = errors.New("want 32 hexadecimal digits")

// String returns 32 lower-case hexadecimal digits.
func (id ID) String() string {
	var b [32]byte
	hex.Encode(b[:], id[:])
	return string(b[:])
}

// AppendText appends the text of id to b. It never fails.
func (id ID) AppendText(b []byte) ([]byte, error) {
	return hex.AppendEncode(b, id[:]), nil
}

// MarshalText returns the text of id. It never fails.
func (id ID) MarshalText() ([]byte, error) {
	return id.AppendText(nil)
}

// UnmarshalText reads what [ParseID] reads.
func (id *ID) UnmarshalText(text []byte) error {
	v, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = v
	return nil
}

// ParseID reads 32 hexadecimal digits of either case, or the form with dashes
// after digits 8, 12, 16 and 20 (RFC 9562 section 4). It does not demand
// version 1, so every ID that a store holds can be named.
func ParseID(s string) (ID, error) {
	var id ID
	var digits [32]byte
	switch {
	case len(s) == 32:
		copy(digits[:], s)
	case len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-':
		copy(digits[0:8], s[0:8])
		copy(digits[8:12], s[9:13])
		copy(digits[12:16], s[14:18])
		copy(digits[16:20], s[19:23])
		copy(digits[20:32], s[24:36])
	default:
		return ID{}, fmt.Errorf("spool: invalid id %.40q: %w", s, errIDText)
	}
	if _, err := hex.Decode(id[:], digits[:]); err != nil {
		return ID{}, fmt.Errorf("spool: invalid id %.40q: %w", s, errIDText)
	}
	return id, nil
}

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// Time returns the time id was made, to 100 ns, in UTC. It is the zero time for
// an ID that is not of version 1.
func (id ID) Time() time.Time {
	if id[6]>>4 != 1 {
		return time.Time{}
	}
	ticks := int64(binary.BigEndian.Uint16(id[6:8])&0x0fff)<<48 |
		int64(binary.BigEndian.Uint16(id[4:6]))<<32 |
		int64(binary.BigEndian.Uint32(id[0:4]))
	ticks -= gregorianTicks
	sec, rest := ticks/ticksPerSecond, ticks%ticksPerSecond
	return time.Unix(sec, rest*100).UTC()
}

// Compare returns -1, 0 or +1 as id was made before, with or after other; among
// IDs of the same time the remaining bytes decide.
func (id ID) Compare(other ID) int {
	a, b := id.Key(), other.Key()
	return bytes.Compare(a[:], b[:])
}

// Key returns the bytes of id with the timestamp's high bits first, in the order
// of version 6 (RFC 9562 section 5.6), so that keys sort by time and a store
// under keys appends. The version stays as it is: [FromKey] restores any ID.
func (id ID) Key() [16]byte {
	var k [16]byte
	hi := binary.BigEndian.Uint16(id[6:8])
	ticks := uint64(hi&0x0fff)<<48 |
		uint64(binary.BigEndian.Uint16(id[4:6]))<<32 |
		uint64(binary.BigEndian.Uint32(id[0:4]))
	binary.BigEndian.PutUint64(k[:8], ticks>>12<<16|uint64(hi&0xf000)|ticks&0x0fff)
	copy(k[8:], id[8:])
	return k
}

// FromKey is the inverse of [ID.Key].
func FromKey(k [16]byte) ID {
	v := binary.BigEndian.Uint64(k[:8])
	ticks := v>>16<<12 | v&0x0fff
	var id ID
	putTicks(&id, ticks, uint16(v&0xf000))
	copy(id[8:], k[8:])
	return id
}

// putTicks writes a timestamp of 60 bits and the version bits in place.
func putTicks(id *ID, ticks uint64, version uint16) {
	binary.BigEndian.PutUint32(id[0:4], uint32(ticks))
	binary.BigEndian.PutUint16(id[4:6], uint16(ticks>>32))
	binary.BigEndian.PutUint16(id[6:8], version|uint16(ticks>>48)&0x0fff)
}
