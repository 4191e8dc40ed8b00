package dns

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// ResolvConf is the part of a resolv.conf file that is used.
type ResolvConf struct {
	// Servers are the name servers, with port 53.
	Servers []netip.AddrPort
	// Domain is the local domain.
	Domain string
	// Search is the search list; without "search" line it is the domain.
	Search []string
	// Ndots, Timeout and Attempts are options; defaults 1, 5 s and 2.
	Ndots    int
	Timeout  time.Duration
	Attempts int
	// EDNS0 is the option edns0, TrustAD the option trust-ad.
	EDNS0, TrustAD bool
}

const (
	maxConfFile = 1 << 20
	maxSearch   = 32
	maxServers  = 16
)

// LoadResolvConf reads the file at path; "" is /etc/resolv.conf. A file without
// name servers means the local machine, as resolv.conf(5) says.
func LoadResolvConf(path string) (ResolvConf, error) {
	if path == "" {
		path = "/etc/resolv.conf"
	}
	f, err := os.Open(path)
	if err != nil {
		return ResolvConf{}, fmt.Errorf("dns: resolver configuration: %w", err)
	}
	defer f.Close()
	rc, err := parseResolvConf(io.LimitReader(f, maxConfFile))
	if err != nil {
		return ResolvConf{}, fmt.Errorf("dns: resolver configuration %s: %w", path, err)
	}
	return rc, nil
}

func parseResolvConf(r io.Reader) (ResolvConf, error) {
	rc := ResolvConf{Ndots: 1, Timeout: 5 * time.Second, Attempts: 2}
	sc := bufio.NewScanner(r)
	for n := 1; sc.Scan(); n++ {
		line := sc.Text()
		if i := strings.IndexAny(line, "#;"); i >= 0 {
			line = line[:i]
		}
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if err := rc.line(f[0], f[1:]); err != nil {
			return rc, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return rc, err
	}
	if len(rc.Servers) == 0 {
		rc.Servers = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")}
	}
	if rc.Search == nil && rc.Domain != "" {
		rc.Search = []string{rc.Domain}
	}
	return rc, nil
}

func (rc *ResolvConf) line(word string, args []string) error {
	switch word {
	case "nameserver":
		ip, err := netip.ParseAddr(args[0])
		if err != nil {
			return fmt.Errorf("nameserver: %w", err)
		}
		if len(rc.Servers) < maxServers {
			rc.Servers = append(rc.Servers, netip.AddrPortFrom(ip, 53))
		}
	case "domain":
		d, err := Canonical(args[0])
		if err != nil {
			return err
		}
		rc.Domain = d
	case "search":
		rc.Search = []string{}
		for _, a := range args[:min(len(args), maxSearch)] {
			if a == "." {
				continue
			}
			d, err := Canonical(a)
			if err != nil {
				return err
			}
			rc.Search = append(rc.Search, d)
		}
	case "options":
		for _, a := range args {
			rc.option(a)
		}
	}
	return nil
}

// option reads one option. Numbers are capped as resolv.conf(5) says; unknown
// options are for other resolvers.
func (rc *ResolvConf) option(opt string) {
	name, val, _ := strings.Cut(opt, ":")
	n, err := strconv.Atoi(val)
	switch {
	case name == "edns0":
		rc.EDNS0 = true
	case name == "trust-ad":
		rc.TrustAD = true
	case err != nil || n < 0:
	case name == "ndots":
		rc.Ndots = min(n, 15)
	case name == "timeout" && n > 0:
		rc.Timeout = time.Duration(min(n, 30)) * time.Second
	case name == "attempts" && n > 0:
		rc.Attempts = min(n, 5)
	}
}

// StubConfig returns the configuration of a Stub that follows rc. EDNS0 stays
// on, as is the default of a Stub.
func (rc ResolvConf) StubConfig() StubConfig {
	c := DefaultStubConfig()
	for _, s := range rc.Servers {
		c.Servers = append(c.Servers, Server{Addr: s})
	}
	c.Search, c.Ndots = rc.Search, rc.Ndots
	c.Timeout, c.Attempts, c.TrustAD = rc.Timeout, rc.Attempts, rc.TrustAD
	return c
}
