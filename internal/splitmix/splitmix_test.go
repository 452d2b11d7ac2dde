package splitmix

import "testing"

// The numbers are those of the authors' reference program.
func TestNumbersAreTheReferences(t *testing.T) {
	s := Source(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := s.Next(); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

func TestFloatsAreBelowOne(t *testing.T) {
	s := Source(1)
	for range 1000 {
		if f := s.Float(); f < 0 || f >= 1 {
			t.Fatal(f)
		}
	}
}
