package metric

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrPrefix reports a prefix that cannot start a metric name.
var ErrPrefix = errors.New("metric: prefix may hold letters, digits, _ and : and may not start with a digit")

// flushAt is the size at which a part of an exposition is handed to the writer.
const flushAt = 32 << 10

// WritePrometheus writes all families in the Prometheus text format, version 0.0.4, sorted by name, each name preceded
// by prefix. Families without series have HELP and TYPE lines only. It returns [ErrPrefix] before writing anything, or
// the error of w. A nil set writes nothing.
func (s *Set) WritePrometheus(w io.Writer, prefix string) error {
	if prefix != "" && !legalName(prefix, true) {
		return ErrPrefix
	}
	var buf []byte
	var scratch []sample
	for _, f := range s.sorted() {
		scratch = collectSorted(f, scratch)
		d := f.desc()
		buf = appendHead(buf, d, prefix)
		for i := range scratch {
			buf = appendSeries(buf, d, prefix, &scratch[i])
			if len(buf) < flushAt {
				continue
			}
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	if len(buf) == 0 {
		return nil
	}
	_, err := w.Write(buf)
	return err
}

func collectSorted(f family, scratch []sample) []sample {
	scratch = f.collect(scratch[:0])
	slices.SortFunc(scratch, func(a, b sample) int { return slices.Compare(a.values, b.values) })
	return scratch
}

func appendHead(b []byte, d *Desc, prefix string) []byte {
	b = append(b, "# HELP "...)
	b = append(append(b, prefix...), d.Name...)
	b = append(b, ' ')
	b = appendEscaped(b, d.Help, false)
	b = append(b, "\n# TYPE "...)
	b = append(append(b, prefix...), d.Name...)
	b = append(b, ' ')
	b = append(b, d.Type...)
	return append(b, '\n')
}

func appendSeries(b []byte, d *Desc, prefix string, s *sample) []byte {
	if s.hist == nil {
		b = append(append(b, prefix...), d.Name...)
		b = appendLabels(b, d.Labels, s.values, "")
		return appendLine(b, s.num)
	}
	for i, bound := range s.hist.bounds {
		b = appendBucket(b, d, prefix, s, formatFloat(bound), s.hist.cumulative[i])
	}
	b = appendBucket(b, d, prefix, s, "+Inf", s.hist.count)
	b = append(append(append(b, prefix...), d.Name...), "_sum"...)
	b = appendLabels(b, d.Labels, s.values, "")
	b = appendLine(b, s.hist.sum)
	b = append(append(append(b, prefix...), d.Name...), "_count"...)
	b = appendLabels(b, d.Labels, s.values, "")
	return appendLine(b, float64(s.hist.count))
}

func appendBucket(b []byte, d *Desc, prefix string, s *sample, le string, n uint64) []byte {
	b = append(append(append(b, prefix...), d.Name...), "_bucket"...)
	b = appendLabels(b, d.Labels, s.values, le)
	return appendLine(b, float64(n))
}

func appendLabels(b []byte, names, values []string, le string) []byte {
	if len(names) == 0 && le == "" {
		return b
	}
	sep := byte('{')
	for i, name := range names {
		b = append(b, sep)
		b = append(append(b, name...), '=', '"')
		b = append(appendEscaped(b, values[i], true), '"')
		sep = ','
	}
	if le != "" {
		b = append(b, sep)
		b = append(append(append(b, `le="`...), le...), '"')
	}
	return append(b, '}')
}

func appendLine(b []byte, v float64) []byte {
	b = append(b, ' ')
	b = appendFloat(b, v)
	return append(b, '\n')
}

// appendFloat writes whole numbers without an exponent, as people read counters.
func appendFloat(b []byte, v float64) []byte {
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendInt(b, int64(v), 10)
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

func formatFloat(v float64) string { return string(appendFloat(nil, v)) }

// appendEscaped writes s with backslash and line feed escaped, and the double quote too in label values.
func appendEscaped(b []byte, s string, quote bool) []byte {
	special := "\\\n"
	if quote {
		special = "\\\n\""
	}
	for {
		i := strings.IndexAny(s, special)
		if i < 0 {
			return append(b, s...)
		}
		b = append(append(b, s[:i]...), '\\')
		if s[i] == '\n' {
			b = append(b, 'n')
		} else {
			b = append(b, s[i])
		}
		s = s[i+1:]
	}
}
