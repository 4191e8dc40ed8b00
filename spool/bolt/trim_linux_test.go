package bolt

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"example.com/svc/spool"
)

// residentMap returns the resident bytes of the memory map of file.
func residentMap(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	sum, in := 0, false
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.Contains(fields[0], "-") {
			in = strings.HasSuffix(strings.TrimSpace(line), file)
		}
		if in && fields[0] == "Rss:" {
			kb, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += kb << 10
		}
	}
	return sum
}

// TestResidentMap stores 200 MB and looks at each value: the map must not stay in
// the memory of this process.
func TestResidentMap(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{NoSync: true})
	ids := spool.NewIDs()
	const limit = 96 << 20
	var list []spool.ID
	for range 200 {
		var items []spool.Item
		for range 500 {
			items = append(items, spool.Item{ID: ids.Next(), Value: make([]byte, 2<<10)})
			list = append(list, items[len(items)-1].ID)
		}
		if err := s.PutBatch(t.Context(), items); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		n := residentMap(t, s.file)
		t.Logf("%s: %d MB", when, n>>20)
		if n > limit {
			t.Errorf("%s: %d MB of the map are resident, want at most %d", when, n>>20, limit>>20)
		}
	}
	check("stored")
	for _, id := range list {
		if _, err := s.Get(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	check("read")
	for _, err := range s.Values(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check("enumerated")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, dir, Options{NoSync: true})
	defer s.Close()
	check("opened")
	for i := 0; i < len(list); i += 500 {
		if err := s.DeleteBatch(t.Context(), list[i:i+500]); err != nil {
			t.Fatal(err)
		}
	}
	check("removed")
}
