package script

// Bounds of pattern matching: steps of one library call, and nesting of the matcher.
const (
	maxMatchSteps = 20_000_000
	maxMatchDepth = 200
	maxCaptures   = 32
)

// Lengths of captures that are no lengths.
const (
	captureOpen     = -1
	capturePosition = -2
)

// matcher matches Lua patterns (Lua 5.2 manual, section 6.4.1) by backtracking, with a bound on the work.
type matcher struct {
	vm     *vm
	s, p   string
	anchor bool
	begin  int // of the pattern behind the caret
	level  int // captures in use
	start  [maxCaptures]int
	length [maxCaptures]int
	depth  int
	steps  int
}

func newMatcher(vm *vm, s, p string) *matcher {
	m := &matcher{vm: vm, s: s, p: p}
	if len(p) > 0 && p[0] == '^' {
		m.anchor, m.begin = true, 1
	}
	return m
}

// search finds the first match at or behind pos; -1 when there is none.
func (m *matcher) search(pos int) (from, to int) {
	for ; pos <= len(m.s); pos++ {
		if end := m.tryAt(pos); end >= 0 {
			return pos, end
		}
		if m.anchor {
			break
		}
	}
	return -1, -1
}

// tryAt matches at pos and returns the end, -1 when there is no match.
func (m *matcher) tryAt(pos int) int {
	m.level, m.depth = 0, 0
	return m.match(pos, m.begin)
}

// step counts work. The clock is looked at now and then, since the VM does not run meanwhile.
func (m *matcher) step() {
	m.steps++
	if m.steps&0xffff == 0 {
		m.vm.checkTime()
		if m.steps > maxMatchSteps {
			m.vm.raisef("pattern too complex")
		}
	}
}

// match matches the pattern from pi on at si.
func (m *matcher) match(si, pi int) int {
	if m.depth++; m.depth > maxMatchDepth {
		m.vm.raisef("pattern too complex")
	}
	defer func() { m.depth-- }()
	for pi < len(m.p) {
		m.step()
		switch c := m.p[pi]; {
		case c == '(':
			return m.open(si, pi)
		case c == ')':
			return m.close(si, pi)
		case c == '$' && pi+1 == len(m.p):
			if si == len(m.s) {
				return si
			}
			return -1
		case c == '%' && pi+1 < len(m.p) && m.p[pi+1] == 'b':
			if si = m.balance(si, pi+2); si < 0 {
				return -1
			}
			pi += 4
			continue
		case c == '%' && pi+1 < len(m.p) && m.p[pi+1] == 'f':
			next, ok := m.frontier(si, pi+2)
			if !ok {
				return -1
			}
			pi = next
			continue
		case c == '%' && pi+1 < len(m.p) && m.p[pi+1] >= '0' && m.p[pi+1] <= '9':
			if si = m.backReference(si, m.p[pi+1]); si < 0 {
				return -1
			}
			pi += 2
			continue
		}
		var done bool
		if si, pi, done = m.single(si, pi); done {
			return si
		}
	}
	return si
}

// single matches one class with its repetition. done means that si is the answer.
func (m *matcher) single(si, pi int) (int, int, bool) {
	end := m.classEnd(pi)
	var rep byte
	if end < len(m.p) {
		rep = m.p[end]
	}
	switch rep {
	case '?':
		if m.fits(si, pi, end) {
			if r := m.match(si+1, end+1); r >= 0 {
				return r, 0, true
			}
		}
		return si, end + 1, false
	case '+':
		if !m.fits(si, pi, end) {
			return -1, 0, true
		}
		return m.most(si+1, pi, end), 0, true
	case '*':
		return m.most(si, pi, end), 0, true
	case '-':
		return m.least(si, pi, end), 0, true
	}
	if !m.fits(si, pi, end) {
		return -1, 0, true
	}
	return si + 1, end, false
}

// most takes as many as it can and gives back one at a time.
func (m *matcher) most(si, pi, end int) int {
	n := 0
	for m.fits(si+n, pi, end) {
		m.step()
		n++
	}
	for ; n >= 0; n-- {
		if r := m.match(si+n, end+1); r >= 0 {
			return r
		}
	}
	return -1
}

// least takes as few as it can.
func (m *matcher) least(si, pi, end int) int {
	for {
		m.step()
		if r := m.match(si, end+1); r >= 0 {
			return r
		}
		if !m.fits(si, pi, end) {
			return -1
		}
		si++
	}
}

func (m *matcher) open(si, pi int) int {
	length, next := captureOpen, pi+1
	if next < len(m.p) && m.p[next] == ')' {
		length, next = capturePosition, next+1
	}
	if m.level == maxCaptures {
		m.vm.raisef("too many captures")
	}
	m.start[m.level], m.length[m.level] = si, length
	m.level++
	r := m.match(si, next)
	if r < 0 {
		m.level--
	}
	return r
}

func (m *matcher) close(si, pi int) int {
	for i := m.level - 1; i >= 0; i-- {
		if m.length[i] == captureOpen {
			m.length[i] = si - m.start[i]
			r := m.match(si, pi+1)
			if r < 0 {
				m.length[i] = captureOpen
			}
			return r
		}
	}
	m.vm.raisef("invalid pattern capture")
	return -1
}

func (m *matcher) balance(si, pi int) int {
	if pi+1 >= len(m.p) {
		m.vm.raisef("malformed pattern (missing arguments to '%%b')")
	}
	if si >= len(m.s) || m.s[si] != m.p[pi] {
		return -1
	}
	open, shut, deep := m.p[pi], m.p[pi+1], 1
	for i := si + 1; i < len(m.s); i++ {
		m.step()
		switch m.s[i] {
		case shut:
			if deep--; deep == 0 {
				return i + 1
			}
		case open:
			deep++
		}
	}
	return -1
}

func (m *matcher) frontier(si, pi int) (next int, ok bool) {
	if pi >= len(m.p) || m.p[pi] != '[' {
		m.vm.raisef("missing '[' after '%%f' in pattern")
	}
	end := m.classEnd(pi)
	var before, at byte
	if si > 0 {
		before = m.s[si-1]
	}
	if si < len(m.s) {
		at = m.s[si]
	}
	return end, !m.inSet(before, pi, end-1) && m.inSet(at, pi, end-1)
}

func (m *matcher) backReference(si int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.length[i] == captureOpen {
		m.vm.raisef("invalid capture index")
	}
	n := max(m.length[i], 0)
	if len(m.s)-si >= n && m.s[m.start[i]:m.start[i]+n] == m.s[si:si+n] {
		return si + n
	}
	return -1
}
