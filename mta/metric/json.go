package metric

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// WriteJSON writes all families as one JSON object keyed by name (schema metrics_json): {"type","help","value"}. The
// value is a number for a family without labels, {label: {value: number}} for one label, and a list of objects of the
// labels plus "@" for several; null when there is no series. The number of a histogram is an object
// {"count","sum","avg","bucket"}, where bucket lists [upper bound, cumulative count] without +Inf. Values that JSON
// cannot express are null. It returns the error of w. A nil set writes {}.
func (s *Set) WriteJSON(w io.Writer) error {
	buf := []byte{'{'}
	var scratch []sample
	for i, f := range s.sorted() {
		scratch = collectSorted(f, scratch)
		if i > 0 {
			buf = append(buf, ',')
		}
		d := f.desc()
		buf = append(appendString(buf, d.Name), `:{"type":"`...)
		buf = append(append(buf, d.Type...), `","help":`...)
		buf = append(appendString(buf, d.Help), `,"value":`...)
		buf = append(appendValue(buf, d.Labels, scratch), '}')
		if len(buf) < flushAt {
			continue
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	_, err := w.Write(append(buf, '}', '\n'))
	return err
}

func appendValue(b []byte, labels []string, samples []sample) []byte {
	switch {
	case len(samples) == 0:
		return append(b, "null"...)
	case len(labels) == 0:
		return appendNumber(b, &samples[0])
	case len(labels) == 1:
		b = append(appendString(append(b, '{'), labels[0]), ':')
		for i := range samples {
			b = append(b, separator("{,", i))
			b = append(appendString(b, samples[i].values[0]), ':')
			b = appendNumber(b, &samples[i])
		}
		return append(b, '}', '}')
	}
	for i := range samples {
		b = append(b, separator("[,", i))
		for j, name := range labels {
			b = append(b, separator("{,", j))
			b = append(appendString(b, name), ':')
			b = appendString(b, samples[i].values[j])
		}
		b = append(appendNumber(append(b, `,"@":`...), &samples[i]), '}')
	}
	return append(b, ']')
}

// separator returns the first of two bytes before the first element and the second before the others.
func separator(pair string, i int) byte { return pair[min(i, 1)] }

func appendNumber(b []byte, s *sample) []byte {
	if s.hist == nil {
		return appendJSONFloat(b, s.num)
	}
	h := s.hist
	avg := 0.0
	if h.count > 0 {
		avg = h.sum / float64(h.count)
	}
	b = append(b, `{"count":`...)
	b = strconv.AppendUint(b, h.count, 10)
	b = appendJSONFloat(append(b, `,"sum":`...), h.sum)
	b = appendJSONFloat(append(b, `,"avg":`...), avg)
	b = append(b, `,"bucket":[`...)
	for i, bound := range h.bounds {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSONFloat(append(b, '['), bound), ',')
		b = append(strconv.AppendUint(b, h.cumulative[i], 10), ']')
	}
	return append(b, ']', '}')
}

func appendJSONFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return appendFloat(b, v)
}

func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return append(b, `""`...)
	}
	return append(b, q...)
}
