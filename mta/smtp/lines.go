package smtp

import "bytes"

// AppendCRLF appends src to dst with every lone CR and every lone LF written as CRLF.
func AppendCRLF(dst, src []byte) []byte {
	for len(src) > 0 {
		i := bytes.IndexAny(src, "\r\n")
		if i < 0 {
			return append(dst, src...)
		}
		dst = append(append(dst, src[:i]...), '\r', '\n')
		if src[i] == '\r' && i+1 < len(src) && src[i+1] == '\n' {
			i++
		}
		src = src[i+1:]
	}
	return dst
}
