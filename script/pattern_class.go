package script

// classEnd is the position behind the class at pi.
func (m *matcher) classEnd(pi int) int {
	c := m.p[pi]
	pi++
	if c == '%' {
		if pi >= len(m.p) {
			m.vm.raisef("malformed pattern (ends with '%%')")
		}
		return pi + 1
	}
	if c != '[' {
		return pi
	}
	if pi < len(m.p) && m.p[pi] == '^' {
		pi++
	}
	for first := true; first || pi < len(m.p) && m.p[pi] != ']'; first = false {
		if pi >= len(m.p) {
			break
		}
		if m.p[pi] == '%' {
			pi++
		}
		pi++
	}
	if pi >= len(m.p) {
		m.vm.raisef("malformed pattern (missing ']')")
	}
	return pi + 1
}

// fits reports whether the byte at si is in the class from pi to end.
func (m *matcher) fits(si, pi, end int) bool {
	if si >= len(m.s) {
		return false
	}
	c := m.s[si]
	switch m.p[pi] {
	case '.':
		return true
	case '%':
		return inClass(c, m.p[pi+1])
	case '[':
		return m.inSet(c, pi, end-1)
	}
	return m.p[pi] == c
}

// inSet reports whether c is in the set from the bracket at pi to the one at last.
func (m *matcher) inSet(c byte, pi, last int) bool {
	in := true
	pi++
	if m.p[pi] == '^' {
		in = false
		pi++
	}
	for ; pi < last; pi++ {
		switch {
		case m.p[pi] == '%':
			pi++
			if inClass(c, m.p[pi]) {
				return in
			}
		case pi+2 < last && m.p[pi+1] == '-':
			if m.p[pi] <= c && c <= m.p[pi+2] {
				return in
			}
			pi += 2
		case m.p[pi] == c:
			return in
		}
	}
	return !in
}

// inClass reports whether c is of the class named by a letter; upper case letters are complements.
func inClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = isLetter(c)
	case 'c':
		in = c < 0x20 || c == 0x7f
	case 'd':
		in = c >= '0' && c <= '9'
	case 'g':
		in = c > 0x20 && c < 0x7f
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > 0x20 && c < 0x7f && !isLetter(c) && (c < '0' || c > '9')
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = isLetter(c) || c >= '0' && c <= '9'
	case 'x':
		in = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
	default:
		return c == class
	}
	if !isLetter(class) {
		return c == class
	}
	return in == (class >= 'a')
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
