package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A frame is, with numbers in big-endian order:
//
//	offset  size  content
//	0       3     the letters "SPL"
//	3       1     version of the format, 1
//	4       4     length of the value in bytes
//	8       4     CRC-32C (Castagnoli) of bytes 0 to 7 followed by the value
//	12      n     the value
//
// Nothing follows the value: a longer record is corrupt.
const (
	// HeaderSize is how many bytes a frame adds to its value.
	HeaderSize = 12
	// MaxValue is the largest value in bytes that a spool stores.
	MaxValue = 1 << 30

	frameMagic   = "SPL"
	frameVersion = 1
)

var (
	errFrameShort   = errors.New("record shorter than its header")
	errFrameMagic   = errors.New("record does not begin with the magic bytes")
	errFrameVersion = errors.New("record has an unknown format version")
	errFrameLength  = errors.New("record length differs from its header")
	errFrameSum     = errors.New("record checksum differs")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FrameHeader returns the bytes that precede value in its frame. The value must
// not exceed [MaxValue].
func FrameHeader(value []byte) [HeaderSize]byte {
	var h [HeaderSize]byte
	copy(h[:3], frameMagic)
	h[3] = frameVersion
	binary.BigEndian.PutUint32(h[4:8], uint32(len(value)))
	binary.BigEndian.PutUint32(h[8:12], frameSum(h[:8], value))
	return h
}

// AppendFrame appends the frame of value to dst and returns the result. The
// value must not exceed [MaxValue].
func AppendFrame(dst, value []byte) []byte {
	h := FrameHeader(value)
	return append(append(dst, h[:]...), value...)
}

// ParseFrame checks the frame b and returns its value, which shares memory with
// b. Every error is a *CorruptError without ID and Path.
func ParseFrame(b []byte) ([]byte, error) {
	if len(b) < HeaderSize {
		return nil, &CorruptError{Err: errFrameShort}
	}
	if string(b[:3]) != frameMagic {
		return nil, &CorruptError{Err: errFrameMagic}
	}
	if b[3] != frameVersion {
		return nil, &CorruptError{Err: fmt.Errorf("%w %d", errFrameVersion, b[3])}
	}
	value := b[HeaderSize:]
	if uint64(binary.BigEndian.Uint32(b[4:8])) != uint64(len(value)) {
		return nil, &CorruptError{Err: errFrameLength}
	}
	if binary.BigEndian.Uint32(b[8:12]) != frameSum(b[:8], value) {
		return nil, &CorruptError{Err: errFrameSum}
	}
	return value, nil
}

func frameSum(head, value []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, head), castagnoli, value)
}
