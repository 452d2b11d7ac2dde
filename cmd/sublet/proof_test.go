package main

import (
	"testing"
	"time"

	"sublet/vnet"
)

func TestPlotOfRuns(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	from := now.Add(-plotWidth * time.Minute)
	got := plotOf([]vnet.ProofRun{
		{From: from.Add(-5 * time.Minute), Minutes: 7, Outcome: vnet.Kept},
		{From: from.Add(3 * time.Minute), Minutes: 1, Outcome: vnet.Broken},
		{From: now.Add(-time.Minute), Minutes: 3, Outcome: vnet.Kept},
	}, from, now)
	if want := "##.!" + "..................................." + "#"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if availability(1) != "100.000%" || availability(0.9999999) != "99.999%" || availability(0.5) != "50.000%" {
		t.Error(availability(0.9999999))
	}
}
