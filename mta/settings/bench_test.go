package settings_test

import (
	"testing"

	"example.com/svc/mta/settings"
)

type wide struct {
	A1, B1 int
	F0     string            `set:"f0" default:"x"`
	F1     string            `set:"f1" default:"x"`
	F2     string            `set:"f2" default:"x"`
	F3     int               `set:"f3" default:"3"`
	F4     int               `set:"f4" default:"3"`
	F5     int               `set:"f5" default:"3"`
	F6     bool              `set:"f6" default:"true"`
	F7     bool              `set:"f7" default:"true"`
	F8     bool              `set:"f8" default:"true"`
	F9     settings.Duration `set:"f9" default:"5m"`
	G0     settings.Duration `set:"g0" default:"5m"`
	G1     settings.Duration `set:"g1" default:"5m"`
	G2     settings.Duration `set:"g2" default:"5m"`
	G3     settings.Size     `set:"g3" default:"5"`
	G4     mode              `set:"g4" default:"Required"`
	G5     string            `set:"g5"`
	G6     string            `set:"g6"`
	G7     string            `set:"g7"`
	G8     string            `set:"g8"`
	G9     string            `set:"g9"`
	H0     *int              `set:"h0"`
	H1     *int              `set:"h1"`
	H2     *int              `set:"h2"`
	H3     int               `set:"h3"`
	H4     int               `set:"h4"`
	H5     int               `set:"h5"`
	H6     int               `set:"h6"`
	H7     int               `set:"h7"`
	H8     int               `set:"h8"`
	H9     int               `set:"h9"`
}

func BenchmarkDecode3of30(b *testing.B) {
	b.ReportAllocs()
	in := tree{"f0": "pool", "f9": "20m", "h9": 5.0}
	for b.Loop() {
		var w wide
		if err := settings.Decode("make", in, &w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOverlay3of30(b *testing.B) {
	b.ReportAllocs()
	in := tree{"f0": "pool", "f9": "20m", "h9": 5.0}
	w := settings.New[wide]()
	for b.Loop() {
		if err := settings.Overlay("make", in, &w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = settings.New[wide]()
	}
}
