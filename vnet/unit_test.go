package vnet

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseRate(t *testing.T) {
	for _, c := range []struct {
		text string
		want Rate
	}{
		{"100Mbit", 100 * Mbit},
		{"1.5 Gbit/s", 1500 * Mbit},
		{"20Mbps", 20 * Mbit}, // bits, as links are sold; tc would read megabytes
		{"20mbps", 20 * Mbit},
		{"8bps", 8}, // bits too; tc would read bytes
		{"0bit", 0},
		{"64 kbit", 64000}, // decimal, not 65536
	} {
		t.Run(c.text, func(t *testing.T) {
			if got, err := ParseRate(c.text); err != nil || got != c.want {
				t.Errorf("ParseRate(%q) = %d, %v, want %d", c.text, got, err, c.want)
			}
		})
	}
	for _, text := range []string{"", "100", "-1Mbit", "NaNbit", "Infbit", "100MB", "100Mib", "Mbit", "1.2.3Mbit", "99999Tbit", "1 000bit"} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseRate(text); err == nil {
				t.Errorf("ParseRate(%q) = %d, want an error", text, got)
			}
		})
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{"256MiB": 256 * MiB, "4GB": 4e9, "4GiB": 4 << 30, "1.5KiB": 1536, "7B": 7} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseBytes(text); err != nil || got != want {
				t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, got, err, want)
			}
		})
	}
	for _, text := range []string{"256", "256M", "256Mbit", "-1B"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

// The kernel counts bytes per second; a rate in bits must be divided once.
func TestBytesPerSecond(t *testing.T) {
	for r, want := range map[Rate]uint64{100 * Mbit: 12_500_000, 8 * Kbit: 1000, 0: 0, -1: 0, Unbounded: math.MaxInt64 / 8} {
		if got := r.BytesPerSecond(); got != want {
			t.Errorf("(%d).BytesPerSecond() = %d, want %d", r, got, want)
		}
	}
	if got := (250 * Mbit).Mbps(); got != 250 {
		t.Errorf("Mbps = %v, want 250", got)
	}
}

func TestQuantitiesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate(rapid.Int64Range(0, 1<<53).Draw(t, "rate"))
		if got, err := ParseRate(r.String()); err != nil || got != r {
			t.Fatalf("%d is written %s, read %d, %v", r, r, got, err)
		}
		b := Bytes(rapid.Int64Range(0, 1<<53).Draw(t, "bytes"))
		if got, err := ParseBytes(b.String()); err != nil || got != b {
			t.Fatalf("%d is written %s, read %d, %v", b, b, got, err)
		}
		c := CPU(rapid.Int64Range(0, int64(MaxCPU)/2).Draw(t, "cpu"))
		if got, err := ParseCPU(c.String()); err != nil || got != c {
			t.Fatalf("%d is written %s, read %d, %v", c, c, got, err)
		}
		d := time.Duration(rapid.Int64Range(0, int64(MaxDuration)).Draw(t, "duration"))
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%d is written %s, read %d, %v", d, FormatDuration(d), got, err)
		}
	})
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "1w2d12h": 228 * time.Hour,
		"10ms": 10 * time.Millisecond, "0s": 0, "0d": 0, "5us": 5 * time.Microsecond, "5µs": 5 * time.Microsecond,
	} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseDuration(text); err != nil || got != want {
				t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
			}
		})
	}
	for _, text := range []string{"", "90", "-1h", "-2d", "d", "1h2d", "2d-1h", "NaNd", "1e9d", "3651d", "3650d1s", "w", "1d1w", "600w", "99999999h"} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseDuration(text); err == nil {
				t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
			}
		})
	}
	for d, want := range map[time.Duration]string{
		90 * time.Minute: "1h30m", 6 * time.Hour: "6h", 48 * time.Hour: "2d", 36 * time.Hour: "1d12h",
		10 * time.Millisecond: "10ms", 0: "0s", 20 * time.Second: "20s", 10 * time.Minute: "10m",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestParseCPU(t *testing.T) {
	if got, err := ParseCPU("0.5"); err != nil || got != 500 {
		t.Errorf("ParseCPU(0.5) = %d, %v, want 500", got, err)
	}
	for _, text := range []string{"", "NaN", "Inf", "-1", "half", "1e9"} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseCPU(text); err == nil {
				t.Errorf("ParseCPU(%q) = %d, want an error", text, got)
			}
		})
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "A1", "n-1", "n_1", "0", "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"} {
		t.Run(name, func(t *testing.T) {
			if err := CheckName(name); err != nil {
				t.Errorf("CheckName(%q) = %v", name, err)
			}
		})
	}
	for _, name := range []string{"", "-a", "a-", "a.b", "a/b", "../x", "a b", "a\n", "a\x00", "é", "$(x)", "a;b", "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddde"} {
		t.Run(name, func(t *testing.T) {
			if CheckName(name) == nil {
				t.Errorf("CheckName(%q) is nil", name)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	words := []string{"name", "ends", "min", "max", "latency", "nodes", "a", "h1", "host2", "up"}
	for typed, want := range map[string]string{
		"neme": "name", "nam": "name", "latancy": "latency", "mn": "min", "zzz": "", "bandwidth": "",
		"nodse": "nodes", "ndoes": "nodes", "laetncy": "latency", "ltncy": "latency", "upp": "up", "mxa": "",
		"c": "", "b": "", "h3": "", "nxyes": "nodes", "nxyzs": "", "": "", "mix": "", "nam\xff": "name",
	} {
		t.Run(typed, func(t *testing.T) {
			if got := Nearest(typed, words); got != want {
				t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
			}
		})
	}
}

// What other programs write is refused with how to write it here.
func TestUnitsOfOthers(t *testing.T) {
	rate := func(s string) error { _, err := ParseRate(s); return err }
	size := func(s string) error { _, err := ParseBytes(s); return err }
	cpu := func(s string) error { _, err := ParseCPU(s); return err }
	span := func(s string) error { _, err := ParseDuration(s); return err }
	for _, test := range []struct {
		parse      func(string) error
		text, says string
	}{
		{rate, "12.5MB/s", "write 100Mbit"}, {rate, "12.5 MBps", "write 100Mbit"}, {rate, "1GB/s", "write 8Gbit"}, {rate, "100B/s", "write 800bit"},
		{rate, "1MiB/s", "write 8388608bit"}, {rate, "100M", "write 100Mbit"}, {rate, "1g", "write 1Gbit"}, {rate, "1.5G", "write 1500Mbit"},
		{rate, "100Mb/s", "write 100Mbit"}, {rate, "100Mb", "write 100Mbit"}, {rate, "1e6", "write 1000000kbit"}, {rate, "100", "write 100kbit, 100Mbit or 100Gbit"},
		{rate, "x", "a rate such as"}, {rate, "M", "a rate such as"}, {rate, "-1M", "a rate such as"}, {rate, "1e99M", "a rate such as"}, {rate, "5furlongs", "a rate such as"},
		{size, "512M", "write 512MiB"}, {size, "4Gi", "write 4GiB"}, {size, "4g", "write 4GiB"}, {size, "512", "write 512MiB or 512GiB"}, {size, "x", "a size such as"},
		{cpu, "500m", "write 0.5"}, {cpu, "m", "cores such as"}, {cpu, "-5m", "cores such as"},
		{span, "90", "without its unit"}, {span, "x", "a duration such as"},
	} {
		if err := test.parse(test.text); err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), strconv.Quote(test.text)) {
			t.Errorf("%q: %v, want %q", test.text, err, test.says)
		}
	}
	for text, want := range map[string]Rate{"20Mbps": 20 * Mbit, "20mbps": 20 * Mbit, "20MBPS": 20 * Mbit, "1GBIT": Gbit} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseRate(text); err != nil || got != want {
				t.Errorf("ParseRate(%q) = %v, %v", text, got, err)
			}
		})
	}
}

// TestWholeBytes: rounding changes nothing that is whole, and goes the way it says.
func TestWholeBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate(rapid.Int64Range(0, int64(100*Gbit)).Draw(t, "rate"))
		down, up := r.WholeBytesDown(), r.WholeBytesUp()
		if down%8 != 0 || up%8 != 0 || down > r || up < r || up-down != 8*min(1, r%8) {
			t.Errorf("%d is %d and %d", r, down, up)
		}
	})
}
