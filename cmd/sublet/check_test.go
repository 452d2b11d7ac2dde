package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sublet/vnet"
)

// A broken promise ends with 4. What was not measured does not, and is said.
func TestCheckSaysWhatWasNotMeasured(t *testing.T) {
	link := func(o vnet.Outcome) vnet.LinkVerdict {
		return vnet.LinkVerdict{Name: "a-b", From: "a", To: "b", OK: o == vnet.Kept, Outcome: o, Why: "why it is " + string(o)}
	}
	for _, c := range []struct {
		outcome vnet.Outcome
		fails   bool
		says    bool
	}{{vnet.Kept, false, false}, {vnet.NotMeasured, false, true}, {vnet.Broken, true, false}} {
		v := vnet.Verdict{OK: c.outcome == vnet.Kept, Outcome: c.outcome, Links: []vnet.LinkVerdict{link(c.outcome)}}
		var out, errs bytes.Buffer
		if err := (&app{out: &out, err: &errs, format: "table"}).judge(v); (err != nil) != c.fails || c.fails && exitCode(err) != exitBroken {
			t.Errorf("%s: %v", c.outcome, err)
		}
		if !strings.Contains(out.String(), string(c.outcome)) || !strings.Contains(out.String(), "WHY") || strings.Contains(errs.String(), "not all promises were measured") != c.says {
			t.Errorf("%s prints\n%s%s", c.outcome, &out, &errs)
		}
		out.Reset()
		_ = (&app{out: &out, err: &errs, format: "json"}).judge(v)
		var got struct {
			OK      bool
			Verdict string
			Links   []struct{ Verdict string }
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.OK != v.OK || got.Verdict != string(c.outcome) || got.Links[0].Verdict != string(c.outcome) {
			t.Errorf("%s: %+v, %v in\n%s", c.outcome, got, err, &out)
		}
	}
}

// What no check can measure is not put down to a lack of processors.
func TestCheckSaysWhatNothingMeasures(t *testing.T) {
	top := vnet.Topology{Switches: []vnet.VirtualSwitch{{Name: "s1", Kind: vnet.SwitchOpenFlow}}}
	why := notMeasured(top, vnet.VirtualLink{Name: "a-s1", Ends: [2]string{"a", "s1"}})
	v := vnet.Verdict{Outcome: vnet.NotMeasured, Links: []vnet.LinkVerdict{{Name: "a-s1", OK: true, Outcome: vnet.NotMeasured, Why: why}}}
	var out, errs bytes.Buffer
	if err := (&app{out: &out, err: &errs, format: "table"}).judge(v); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(errs.String(), "processors") || !strings.Contains(errs.String(), "WHY") || strings.Count(out.String(), "not measured") != 1 {
		t.Errorf("it prints\n%s%s", &out, &errs)
	}
}

// A verdict that a former version stored says what it said then.
func TestVerdictsOfFormerVersions(t *testing.T) {
	for text, want := range map[string]string{`{"ok": true}`: "kept", `{"ok": false}`: "broken", `{"ok": true, "stale": true}`: "kept (stale)", `{"ok": false, "verdict": "not measured"}`: "not measured"} {
		var v vnet.Verdict
		if err := json.Unmarshal([]byte(text), &v); err != nil || checked(&v) != want {
			t.Errorf("%s: %q, %v", text, checked(&v), err)
		}
	}
}
