package script

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	lua "github.com/Shopify/go-lua"
)

// luaFile is an open file of a policy: the object of io.open. Files that are not closed are closed when their state is
// gone.
type luaFile struct {
	f   *os.File // nil once closed
	r   *bufio.Reader
	out io.Writer
	std bool // not to be closed
}

// maxRead bounds what one read returns.
const maxRead = maxString

// fileType declares the object of io.open.
func fileType() TypeDecl {
	return Type[luaFile]("file", "An open file.",
		Fn("read", "Reads by formats: a line, a number, everything, or so many bytes.",
			func(f *luaFile, formats ...any) (Values, error) { return f.read(formats) }),
		Fn("lines", "Iterates over the lines.", func(f *luaFile) func() (any, error) {
			return func() (any, error) { return f.next() }
		}),
		Fn("write", "Writes strings and numbers.", func(f *luaFile, parts ...string) Values { return f.write(parts) }),
		Fn("seek", "Moves the position.", (*luaFile).seek, "whence?", "offset?"),
		Fn("flush", "Does nothing: writes are not buffered.", func(f *luaFile) *luaFile { return f }),
		Fn("close", "Closes the file.", func(f *luaFile) Values { return f.close() }),
		Fn("__tostring", "", func(f *luaFile) string {
			if f.out == nil {
				return "file (closed)"
			}
			return "file"
		}),
	)
}

// openIO replaces the library of the VM, whose reads return nothing.
func (vm *vm) openIO() {
	l := vm.l
	l.NewTable()
	vm.functions(map[string]lua.Function{
		"open": vm.ioOpen, "lines": vm.ioLines, "type": vm.ioType,
		"write": func(l *lua.State) int {
			var b strings.Builder
			for i := 1; i <= l.Top(); i++ {
				b.WriteString(vm.str(i, "write"))
			}
			_, _ = io.WriteString(vm.eng.output(), b.String())
			vm.pushRef(vm.eng.types.file, &luaFile{out: vm.eng.output(), std: true})
			return 1
		},
	})
	for _, name := range []string{"input", "output", "read", "tmpfile", "close"} {
		l.PushGoFunction(func(*lua.State) int { return vm.raisef("io.%s is not served yet", name) })
		l.SetField(-2, name)
	}
	vm.pushRef(vm.eng.types.file, &luaFile{out: vm.eng.output(), std: true})
	l.SetField(-2, "stdout")
	vm.pushRef(vm.eng.types.file, &luaFile{out: os.Stderr, std: true})
	l.SetField(-2, "stderr")
	l.SetGlobal("io")
}

// output is where print and io.write go.
func (e *Engine) output() io.Writer {
	if e.cfg.Output != nil {
		return e.cfg.Output
	}
	return os.Stdout
}

// failure is how the io library reports: nil, text, number.
func failure(err error) Values {
	code := 0
	var no syscall.Errno
	if errors.As(err, &no) {
		code = int(no)
	}
	text := err.Error()
	var pe *fs.PathError
	if errors.As(err, &pe) {
		text = pe.Path + ": " + pe.Err.Error()
	}
	return Values{nil, text, code}
}

func (vm *vm) pushValues(vals Values) int {
	vm.room(len(vals))
	for _, v := range vals {
		vm.mustPush(vm.pushAny(v, 0))
	}
	return len(vals)
}

func (vm *vm) ioOpen(l *lua.State) int {
	name, mode := vm.str(1, "open"), "r"
	if !l.IsNoneOrNil(2) {
		mode = vm.str(2, "open")
	}
	flags, ok := map[string]int{
		"r": os.O_RDONLY, "w": os.O_WRONLY | os.O_CREATE | os.O_TRUNC, "a": os.O_WRONLY | os.O_CREATE | os.O_APPEND,
		"r+": os.O_RDWR, "w+": os.O_RDWR | os.O_CREATE | os.O_TRUNC, "a+": os.O_RDWR | os.O_CREATE | os.O_APPEND,
	}[strings.ReplaceAll(mode, "b", "")]
	if !ok {
		return vm.raisef("bad argument #2 to 'open' (invalid mode)")
	}
	f, err := os.OpenFile(name, flags, 0o666)
	if err != nil {
		return vm.pushValues(failure(err))
	}
	vm.pushRef(vm.eng.types.file, &luaFile{f: f, r: bufio.NewReader(f), out: f})
	return 1
}

func (vm *vm) ioLines(l *lua.State) int {
	f, err := os.Open(vm.str(1, "lines"))
	if err != nil {
		return vm.raiseError(err)
	}
	lf := &luaFile{f: f, r: bufio.NewReader(f), out: f}
	l.PushGoFunction(func(*lua.State) int {
		if lf.f == nil {
			return vm.raisef("file is already closed")
		}
		v, err := lf.next()
		if err != nil {
			return vm.raiseError(err)
		}
		if v == nil {
			lf.close()
		}
		vm.mustPush(vm.pushAny(v, 0))
		return 1
	})
	return 1
}

func (vm *vm) ioType(l *lua.State) int {
	r := vm.refAt(1)
	switch {
	case r == nil || r.typ != vm.eng.types.file:
		l.PushNil()
	case r.v.(*luaFile).out == nil:
		l.PushString("closed file")
	default:
		l.PushString("file")
	}
	return 1
}

var errClosedFile = errors.New("attempt to use a closed file")

func (f *luaFile) next() (any, error) {
	if f.r == nil {
		return nil, errClosedFile
	}
	return f.line(false)
}

// read serves file:read.
func (f *luaFile) read(formats []any) (Values, error) {
	if f.r == nil {
		if f.std {
			return nil, errors.New("the file cannot be read")
		}
		return nil, errClosedFile
	}
	if len(formats) == 0 {
		formats = []any{"l"}
	}
	var out Values
	for _, format := range formats {
		v, err := f.readOne(format)
		if err != nil {
			return failure(err), nil
		}
		out = append(out, v)
		if v == nil {
			break
		}
	}
	return out, nil
}

func (f *luaFile) readOne(format any) (any, error) {
	if n, ok := format.(int64); ok {
		return f.bytes(n)
	}
	s, _ := format.(string)
	switch strings.TrimPrefix(s, "*") {
	case "l":
		return f.line(false)
	case "L":
		return f.line(true)
	case "a":
		b, err := io.ReadAll(io.LimitReader(f.r, maxRead+1))
		if err == nil && len(b) > maxRead {
			err = fmt.Errorf("file is over %d bytes", maxRead)
		}
		return string(b), err
	case "n":
		return f.number()
	}
	return nil, errors.New("invalid format")
}

// line reads a line; nil at the end of the file.
func (f *luaFile) line(keepEnd bool) (any, error) {
	var b []byte
	for {
		part, err := f.r.ReadSlice('\n')
		b = append(b, part...)
		switch {
		case err == bufio.ErrBufferFull && len(b) <= maxRead:
			continue
		case err == io.EOF && len(b) == 0:
			return nil, nil
		case err != nil && err != io.EOF:
			return nil, err
		}
		if !keepEnd && len(b) > 0 && b[len(b)-1] == '\n' {
			b = b[:len(b)-1]
		}
		return string(b), nil
	}
}

func (f *luaFile) bytes(n int64) (any, error) {
	if n < 0 || n > maxRead {
		return nil, errors.New("invalid number of bytes")
	}
	b, err := io.ReadAll(io.LimitReader(f.r, n))
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		if _, err := f.r.Peek(1); err != nil {
			return nil, nil
		}
	}
	return string(b), nil
}

// number reads a decimal number; nil when there is none.
func (f *luaFile) number() (any, error) {
	var b []byte
	for len(b) < 200 {
		c, err := f.r.ReadByte()
		if err != nil {
			break
		}
		if strings.IndexByte(" \t\r\n", c) >= 0 && len(b) == 0 {
			continue
		}
		if strings.IndexByte("+-.0123456789eExXabcdefABCDEF", c) < 0 {
			_ = f.r.UnreadByte() // a byte was just read
			break
		}
		b = append(b, c)
	}
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		if i, err := strconv.ParseInt(string(b), 0, 64); err == nil {
			return i, nil
		}
		return nil, nil
	}
	return n, nil
}

func (f *luaFile) write(parts []string) Values {
	if f.out == nil {
		return failure(errClosedFile)
	}
	for _, p := range parts {
		if _, err := io.WriteString(f.out, p); err != nil {
			return failure(err)
		}
	}
	return Values{f}
}

func (f *luaFile) seek(whence *string, offset *int64) Values {
	if f.f == nil {
		return failure(errClosedFile)
	}
	how, at := io.SeekCurrent, int64(0)
	if whence != nil {
		switch *whence {
		case "set":
			how = io.SeekStart
		case "end":
			how = io.SeekEnd
		case "cur":
		default:
			return failure(errors.New("invalid option '" + clip(*whence) + "'"))
		}
	}
	if offset != nil {
		at = *offset
	}
	if how == io.SeekCurrent {
		at -= int64(f.r.Buffered())
	}
	pos, err := f.f.Seek(at, how)
	if err != nil {
		return failure(err)
	}
	f.r.Reset(f.f)
	return Values{pos}
}

func (f *luaFile) close() Values {
	switch {
	case f.std:
		return Values{nil, "standard files cannot be closed"}
	case f.f == nil:
		return failure(errClosedFile)
	}
	err := f.f.Close()
	f.f, f.r, f.out = nil, nil, nil
	if err != nil {
		return failure(err)
	}
	return Values{true}
}
