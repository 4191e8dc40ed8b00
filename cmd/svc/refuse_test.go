//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const spools = "  svc.define_spool { name = 'data', path = 'd' }\n  svc.define_spool { name = 'meta', path = 'm' }\n"

// inInit is a policy whose init handler, on line 2, runs body, from line 3 on.
func inInit(body string) string {
	return "local svc = require 'svc'\nsvc.on('init', function()\n" + body + "end)\n"
}

// Each mistake in a policy is one clear error with its place and exit code 1, from check and from serve alike, and
// nothing is opened, bound or made.
func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"missing file", "", []string{"policy.lua", "no such file"}},
		{"syntax", "local svc = require 'svc'\nsvc.on('init', function(\n", []string{"policy.lua:"}},
		{"syntax in the middle", "local a = 1\nlocal b = = 2\nlocal c = 3\n", []string{"policy.lua:2:"}},
		{"error while loading", "local svc = require 'svc'\nsvc.nothing()\n", []string{"policy.lua:2"}},
		{"error in init", inInit("  error('on purpose')\n"), []string{"policy.lua:3", "on purpose"}},
		{"unknown key", inInit(spools + "  svc.start_esmtp_listener { listn = '127.0.0.1:0' }\n"),
			[]string{"policy.lua:5", `"listn"`, `did you mean "listen"`}},
		{"wrong type", inInit(spools + "  svc.start_esmtp_listener { listen = '127.0.0.1:0', max_connections = 'many' }\n"),
			[]string{"policy.lua:5", "max_connections"}},
		{"wrong value", inInit(spools + "  svc.start_http_listener { listen = 'somewhere' }\n"), []string{"policy.lua:5", "listen"}},
		{"bad address", inInit(spools + "  svc.start_esmtp_listener { listen = '127.0.0.1' }\n"),
			[]string{"policy.lua:5", "start_esmtp_listener", "127.0.0.1"}},
		{"no spools", inInit("  svc.start_http_listener { listen = '127.0.0.1:0' }\n"),
			[]string{"policy.lua:2", "no spools", "define_spool", "data", "meta"}},
		{"no init at all", "local svc = require 'svc'\n", []string{"policy.lua", "no spools"}},
		{"one spool missing", inInit("  svc.define_spool { name = 'data', path = 'd' }\n"), []string{"policy.lua:2", `"meta"`}},
		{"spool of another name", inInit("  svc.define_spool { name = 'date', path = 'd' }\n"), []string{"policy.lua:3", `"date"`, `"data"`}},
		{"spool defined twice", inInit(spools + spools), []string{"policy.lua:5", "declared already", "policy.lua:3"}},
		{"kind not served", inInit("  svc.define_spool { name = 'data', path = 'd', kind = 'RocksDB' }\n"),
			[]string{"policy.lua:3", "RocksDB", "not served yet"}},
		{"logs without a place", inInit(spools + "  svc.configure_local_logs {}\n"), []string{"policy.lua:5", "log_dir"}},
		{"two handlers", "local svc = require 'svc'\nsvc.on('init', function() end)\nsvc.on('init', function() end)\n",
			[]string{"policy.lua:2", "policy.lua:3"}},
	} {
		for _, command := range []string{"check", "serve"} {
			t.Run(tc.name+"/"+command, func(t *testing.T) {
				dir := t.TempDir()
				policy := filepath.Join(dir, "policy.lua")
				if tc.text != "" {
					writeFile(t, policy, tc.text)
				}
				p := launch(t, dir, command, "--policy", policy)
				if code := p.exit(t); code != 1 {
					t.Errorf("exit code %d", code)
				}
				oneError(t, p.stderr(), tc.want...)
				if n := len(strings.Split(p.stderr(), "\n")); n > 1 {
					t.Errorf("%d lines:\n%s", n, p.stderr())
				}
				wantOnly(t, dir, "policy.lua")
			})
		}
	}
}

// A policy that may not be read, or is none.
func TestUnreadablePolicy(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.lua")
	writeFile(t, secret, inInit(spools))
	if err := os.Chmod(secret, 0); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, path string
		want       []string
		skip       bool
	}{
		{"a directory", dir, []string{dir}, false},
		{"no permission", secret, []string{secret, "permission denied"}, os.Geteuid() == 0},
	} {
		for _, command := range []string{"check", "serve"} {
			t.Run(tc.name+"/"+command, func(t *testing.T) {
				if tc.skip {
					t.Skip("root reads every file")
				}
				p := launch(t, dir, command, "--policy", tc.path)
				if code := p.exit(t); code != 1 {
					t.Errorf("exit code %d", code)
				}
				oneError(t, p.stderr(), tc.want...)
			})
		}
	}
}

// wantOnly wants dir to hold the named files and no others.
func wantOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		found := false
		for _, n := range names {
			found = found || n == e.Name()
		}
		if !found {
			t.Errorf("%s was made", e.Name())
		}
	}
}
