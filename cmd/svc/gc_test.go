package main

import "testing"

func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 1000, 8 << 20: 1000, 36 << 20: 300, 72 << 20: 100, 1 << 30: 100} {
		if got := growth(live); got != want {
			t.Errorf("with %d bytes alive the heap may grow by %d %%, want %d", live, got, want)
		}
	}
}
