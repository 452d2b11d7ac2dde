package embed

import (
	"testing"

	"sublet/embed/rate"
	"sublet/vnet"
)

func TestKeysOfLinks(t *testing.T) {
	for element, want := range map[rate.Element]bool{
		rate.Outside("n", vnet.Forward): false,
		rate.Exit("x", vnet.Forward):    false,
		rate.Join("j", vnet.Forward):    false,
		{Link: "l", Dir: vnet.Forward}:  true,
	} {
		if got := OfLinks(element.String()); got != want {
			t.Errorf("the key %q is of what carries links: %v, wanted %v", element, got, want)
		}
	}
}
