package vnet

import (
	"testing"
	"time"
)

func TestBandwidthTime(t *testing.T) {
	for text, want := range map[string]int64{
		"10Gbit*h": 10e9 * 3600, "2Mbit*36h": 2e6 * 36 * 3600, "1bit * 1s": 1, "1.5Gbit*1d12h": 1.5e9 * 36 * 3600, "0bit*h": 0,
		"9000Tbit*3650d": Unlimited - 1,
	} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseBandwidthTime(text); err != nil || got != want {
				t.Errorf("%s is %d, %v", text, got, err)
			}
		})
	}
	for _, text := range []string{"", "10Gbit", "10*h", "*h", "10Gbit*", "10Gbit*-1h", "10Gbit*h*h", "h*10Gbit"} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseBandwidthTime(text); err == nil {
				t.Errorf("%q was read as %d", text, got)
			}
		})
	}
	for bits, want := range map[int64]string{10e9 * 3600: "10Gbit*h", 3600: "1bit*h", 0: "0bit*h", 1e9: "277.8kbit*h"} {
		if got := FormatBandwidthTime(bits); got != want {
			t.Errorf("%d bits are %s, not %s", bits, got, want)
		}
	}
	if got := BandwidthTime(3, time.Second/2); got != 2 {
		t.Errorf("1.5 bits count as %d", got)
	}
}
