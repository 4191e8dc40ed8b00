package dns

import (
	"bufio"
	"io"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	hostsCheck = 5 * time.Second // how often the file is looked at for changes
	hostsTTL   = hostsCheck
)

// hostsFile answers from a hosts file, which it reads again when it changes. A
// file that is missing or unreadable is an empty one.
type hostsFile struct {
	path string

	mu      sync.Mutex // protects the fields below
	checked time.Time
	mtime   time.Time
	size    int64
	names   map[string][]netip.Addr
}

// lookup answers for name. ok is false if the file does not know it. A name
// known with addresses of the other family only has no data.
func (h *hostsFile) lookup(name string, qtype Type) (ans Answer, ok bool, err error) {
	addrs := h.load()[name]
	if len(addrs) == 0 {
		return Answer{}, false, nil
	}
	ans = Answer{Name: name, TTL: hostsTTL}
	for _, a := range addrs {
		if a.Is4() == (qtype == TypeA) {
			ans.Records = append(ans.Records, Record{Addr: a})
		}
	}
	if len(ans.Records) == 0 {
		return Answer{}, true, &Error{Name: name, Type: qtype, Kind: NoData, TTL: hostsTTL}
	}
	return ans, true, nil
}

func (h *hostsFile) load() map[string][]netip.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if h.names != nil && now.Sub(h.checked) < hostsCheck {
		return h.names
	}
	h.checked = now
	if h.names == nil {
		h.names = map[string][]netip.Addr{}
	}
	st, err := os.Stat(h.path)
	if err == nil && st.ModTime().Equal(h.mtime) && st.Size() == h.size {
		return h.names
	}
	f, err := os.Open(h.path)
	if err != nil {
		h.names, h.mtime, h.size = map[string][]netip.Addr{}, time.Time{}, 0
		return h.names
	}
	defer f.Close()
	if st, err = f.Stat(); err != nil {
		return h.names
	}
	h.mtime, h.size = st.ModTime(), st.Size()
	h.names = parseHosts(io.LimitReader(f, maxConfFile))
	return h.names
}

// parseHosts reads lines of an address and names, see hosts(5).
func parseHosts(r io.Reader) map[string][]netip.Addr {
	names := make(map[string][]netip.Addr)
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		line, _, _ := strings.Cut(sc.Text(), "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		ip, err := netip.ParseAddr(f[0])
		if err != nil {
			continue
		}
		for _, name := range f[1:] {
			if n, err := Canonical(name); err == nil {
				names[n] = append(names[n], ip.Unmap())
			}
		}
	}
	return names
}
