package smtpc

import "encoding/binary"

// has8bit looks for high bits, 32 bytes at a time.
func has8bit(b []byte) bool {
	const high = 0x8080808080808080
	for len(b) >= 32 {
		v := binary.LittleEndian.Uint64(b) | binary.LittleEndian.Uint64(b[8:]) |
			binary.LittleEndian.Uint64(b[16:]) | binary.LittleEndian.Uint64(b[24:])
		if v&high != 0 {
			return true
		}
		b = b[32:]
	}
	for _, c := range b {
		if c >= 0x80 {
			return true
		}
	}
	return false
}
