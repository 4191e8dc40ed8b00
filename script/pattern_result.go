package script

import "bytes"

// pushCaptures pushes the captures, or the whole match when there are none and whole is set.
func (m *matcher) pushCaptures(from, to int, whole bool) int {
	if m.level == 0 {
		if !whole {
			return 0
		}
		m.vm.l.PushString(m.s[from:to])
		return 1
	}
	m.vm.room(m.level)
	for i := range m.level {
		m.pushCapture(i, from, to)
	}
	return m.level
}

func (m *matcher) pushCapture(i, from, to int) {
	switch {
	case i == 0 && m.level == 0:
		m.vm.l.PushString(m.s[from:to])
	case i >= m.level:
		m.vm.raisef("invalid capture index")
	case m.length[i] == captureOpen:
		m.vm.raisef("unfinished capture")
	case m.length[i] == capturePosition:
		m.vm.l.PushInteger(m.start[i] + 1)
	default:
		m.vm.l.PushString(m.s[m.start[i] : m.start[i]+m.length[i]])
	}
}

// replacement is what gsub puts in place of the match: argument 3 is a string, a table or a function.
func (m *matcher) replacement(from, to int) []byte {
	l := m.vm.l
	if r, ok := m.vm.stringAt(3); ok {
		return m.template(r, from, to)
	}
	m.vm.room(maxCaptures + 2)
	if l.IsTable(3) {
		m.pushCapture(0, from, to)
		l.Table(3)
	} else {
		l.PushValue(3)
		l.Call(m.pushCaptures(from, to, true), 1)
	}
	defer l.Pop(1)
	if !l.ToBoolean(-1) {
		return []byte(m.s[from:to])
	}
	s, ok := m.vm.stringAt(-1)
	if !ok {
		m.vm.raisef("invalid replacement value (a %s)", m.vm.typeName(-1))
	}
	return []byte(s)
}

// template puts captures into a replacement string.
func (m *matcher) template(r string, from, to int) []byte {
	var b bytes.Buffer
	for i := 0; i < len(r); i++ {
		if r[i] != '%' {
			b.WriteByte(r[i])
			continue
		}
		i++
		switch {
		case i < len(r) && r[i] == '%':
			b.WriteByte('%')
		case i < len(r) && r[i] == '0':
			b.WriteString(m.s[from:to])
		case i < len(r) && r[i] >= '1' && r[i] <= '9':
			m.pushCapture(int(r[i]-'1'), from, to)
			s, _ := m.vm.stringAt(-1)
			m.vm.l.Pop(1)
			b.WriteString(s)
		default:
			m.vm.raisef("invalid use of '%%' in replacement string")
		}
	}
	return b.Bytes()
}
