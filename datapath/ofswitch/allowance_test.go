package ofswitch

import "testing"

// At a thousand a second, a full second's worth goes at once and then one each
// millisecond, however often it is asked.
func TestAllowance(t *testing.T) {
	const rate = 1000
	a := allowance{rate: rate}
	taken := 0
	for now := int64(1); now <= 3*second; now += second / 10000 {
		if a.take(now) {
			taken++
		}
	}
	if taken < 4*rate-2 || taken > 4*rate+2 {
		t.Errorf("%d in three seconds instead of %d", taken, 4*rate)
	}
	none := allowance{}
	for range 2 {
		if !none.take(1) {
			t.Error("no bound bounds")
		}
	}
}
