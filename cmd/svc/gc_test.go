package main

import "testing"

func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 1000, 8 << 20: 1000, 28 << 20: 300, 70 << 20: 60, 80 << 20: 60, 1 << 30: 60} {
		if got := growth(live); got != want {
			t.Errorf("with %d bytes alive the heap may grow by %d %%, want %d", live, got, want)
		}
	}
}
