package bolt

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// A log segment is a row of batches, each at a multiple of logAlign and written
// with one call, so that a batch never shares a block of the disk with another.
// A batch is, with numbers in big-endian order:
//
//	offset  size  content
//	0       4     the letters "SLOG"
//	4       4     count of entries
//	8       8     salt of the segment, random: a stored value cannot forge a batch
//	16      8     number of the segment
//	24      8     number of the batch, rising over all segments
//	32      8     number of the oldest segment that still counts
//	40      8     length of the batch in bytes, without what fills its last block
//	48      4     CRC-32C of bytes 0 to 47 and of the table
//	52      4     zero
//	56      24*n  the table: key (16), length of the frame (4), its CRC-32C (4)
//	...           the frames of the entries with a length, in order
//
// An entry of length 0 removes its key. The table repeats the checksum of each
// frame, so that a frame left from an earlier use of the file is told apart.
const (
	logMagic  = "SLOG"
	logAlign  = 4096
	logHeader = 56
	logEntry  = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batchHead is the header of a batch.
type batchHead struct {
	salt, seq, number, floor uint64
	length                   int64
	count                    int
}

// logged is an entry of a batch and where its frame is in the segment.
type logged struct {
	key  [16]byte
	size int // 0 removes key
	sum  uint32
	off  int64
}

// roundUp returns where the block after n bytes begins.
func roundUp(n int64) int64 { return (n + logAlign - 1) &^ (logAlign - 1) }

// appendHead appends header and table of a batch to dst.
func appendHead(dst []byte, h batchHead, batch []*op) []byte {
	begin := len(dst)
	b := append(dst, logMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(h.count))
	for _, v := range [...]uint64{h.salt, h.seq, h.number, h.floor, uint64(h.length)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, o := range batch {
		for i := range o.entries {
			e := &o.entries[i]
			b = append(b, e.key[:]...)
			if e.frame == nil {
				b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
				continue
			}
			b = binary.BigEndian.AppendUint32(b, uint32(e.size()))
			b = append(b, (*e.frame)[8:12]...)
		}
	}
	binary.BigEndian.PutUint32(b[begin+48:], headSum(b[begin:begin+logHeader], b[begin+logHeader:]))
	return b
}

func headSum(head, table []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, head[:48]), castagnoli, table)
}

// readBatch reads header and table of the batch at off of a segment of size
// bytes. ok is false when there is no intact one.
func readBatch(r io.ReaderAt, off, size int64) (h batchHead, entries []logged, ok bool) {
	var head [logHeader]byte
	if size-off < logHeader {
		return h, nil, false
	}
	if _, err := r.ReadAt(head[:], off); err != nil || string(head[:4]) != logMagic {
		return h, nil, false
	}
	h = batchHead{
		count:  int(binary.BigEndian.Uint32(head[4:])),
		salt:   binary.BigEndian.Uint64(head[8:]),
		seq:    binary.BigEndian.Uint64(head[16:]),
		number: binary.BigEndian.Uint64(head[24:]),
		floor:  binary.BigEndian.Uint64(head[32:]),
		length: int64(binary.BigEndian.Uint64(head[40:])),
	}
	if h.length < logHeader || h.length > size-off || int64(h.count) > (h.length-logHeader)/logEntry {
		return h, nil, false
	}
	table := make([]byte, h.count*logEntry)
	if _, err := r.ReadAt(table, off+logHeader); err != nil ||
		headSum(head[:], table) != binary.BigEndian.Uint32(head[48:]) {
		return h, nil, false
	}
	entries, ok = parseTable(table, off+logHeader+int64(len(table)), off+h.length)
	return h, entries, ok
}

// parseTable returns the entries of a table whose frames begin at off and end
// before end.
func parseTable(table []byte, off, end int64) ([]logged, bool) {
	entries := make([]logged, 0, len(table)/logEntry)
	for ; len(table) > 0; table = table[logEntry:] {
		e := logged{
			key: [16]byte(table), off: off,
			size: int(binary.BigEndian.Uint32(table[16:])), sum: binary.BigEndian.Uint32(table[20:]),
		}
		if off += int64(e.size); off > end {
			return nil, false
		}
		entries = append(entries, e)
	}
	return entries, true
}
