package dns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestResolvConf(t *testing.T) {
	const text = `# comment
; another
nameserver 192.0.2.53 # trailing
nameserver 2001:db8::53
domain Corp.Test
search a.test b.test.
options ndots:2 timeout:3 attempts:4 edns0 trust-ad rotate
options ndots:99 timeout:99 attempts:99 timeout:x
sortlist 10.0.0.0
nameserver
`
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rc, err := LoadResolvConf(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = "{[192.0.2.53:53 [2001:db8::53]:53] corp.test [a.test b.test] 15 30s 5 true true}"
	if got := fmt.Sprint(rc); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	c := rc.StubConfig()
	if len(c.Servers) != 2 || c.Ndots != 15 || c.Attempts != 5 || !c.TrustAD || !c.EDNS0 || !c.RecursionDesired {
		t.Errorf("stub configuration %+v", c)
	}
	s, err := NewStub(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()

	rc, err = parseResolvConf(strings.NewReader("domain corp.test\n"))
	if err != nil || fmt.Sprint(rc.Servers, rc.Search, rc.Ndots, rc.Timeout, rc.Attempts) != "[127.0.0.1:53] [corp.test] 1 5s 2" {
		t.Errorf("%+v, %v", rc, err)
	}
	for _, bad := range []string{"nameserver elsewhere", "search a..b", "domain " + strings.Repeat("a", 64)} {
		if _, err := parseResolvConf(strings.NewReader("\n" + bad)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := LoadResolvConf(path + ".no"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func FuzzResolvConf(f *testing.F) {
	f.Add("nameserver ::1\noptions ndots:-1 timeout:0\nsearch . a\n")
	f.Fuzz(func(t *testing.T, s string) {
		rc, err := parseResolvConf(strings.NewReader(s))
		if err != nil {
			return
		}
		stub, err := NewStub(rc.StubConfig())
		if err != nil {
			t.Fatalf("%+v: %v", rc, err)
		}
		stub.Close()
	})
}

func TestHostsFileChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	h := &hostsFile{path: path}
	if _, ok, _ := h.lookup("a", TypeA); ok {
		t.Error("a missing file knows a name")
	}
	if err := os.WriteFile(path, []byte("192.0.2.1 a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := h.lookup("a", TypeA); ok {
		t.Error("the file was looked at before its time")
	}
	h.checked = h.checked.Add(-time.Minute)
	if ans, ok, err := h.lookup("a", TypeA); !ok || err != nil || ans.TTL != hostsTTL {
		t.Errorf("%+v, %t, %v", ans, ok, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	h.checked = h.checked.Add(-time.Minute)
	if _, ok, _ := h.lookup("a", TypeA); ok {
		t.Error("a removed file knows a name")
	}
}
