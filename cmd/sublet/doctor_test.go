package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sublet/datapath/kernel"
)

// The doctor fails for what is needed and missing, not for what is optional or
// cannot be told.
func TestDoctorFailsForWhatIsNeeded(t *testing.T) {
	missing := fmt.Errorf("tried: %w", kernel.ErrNotSupported)
	fine := []kernel.Feature{
		{Name: "there", Needed: true}, {Name: "optional", Err: missing}, {Name: "unclear", Needed: true, Err: errors.New("no permission")},
	}
	if err := lacking(fine); err != nil {
		t.Errorf("a machine with all that is needed: %v", err)
	}
	err := lacking(append(fine, kernel.Feature{Name: "program links", Needed: true, Err: missing}))
	if err == nil || !strings.Contains(err.Error(), "program links") || strings.Contains(err.Error(), "optional") {
		t.Errorf("a machine without what is needed: %v", err)
	}
	for i, want := range []string{"yes", "no", "unknown"} {
		if got := examine(fine[i]); got.State != want || got.Needed != fine[i].Needed {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}
