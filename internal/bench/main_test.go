package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	t.Run("a missed target stands out, and an empty cell is a dash", func(t *testing.T) {
		var out bytes.Buffer
		err := printTable(&out, "a machine", []row{
			{what: "one", measured: "2 ms", ratio: "2.00", target: "< 1 ms", verdict: judge(false)},
			{what: "other", measured: "3 ms", beside: "4 ms"},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join([]string{
			"a machine",
			"what   measured  beside  ratio  target  met",
			"one    2 ms      -       2.00   < 1 ms  MISS",
			"other  3 ms      4 ms    -      -       -",
			"",
		}, "\n")
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})

	t.Run("the median is the lower one of the middle", func(t *testing.T) {
		for _, c := range []struct {
			values []float64
			want   float64
		}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 3, 2, 1}, 2}} {
			if got := median(c.values); got != c.want {
				t.Errorf("%v: got %v, want %v", c.values, got, c.want)
			}
		}
	})

	t.Run("numbers can be read", func(t *testing.T) {
		for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 12345678: "12,345,678"} {
			if got := count(n); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		for n, want := range map[float64]string{0: "0 B", 999: "999 B", 49_200: "49.2 kB", 9_900_000: "9.9 MB", 1_050_000_000: "1.05 GB"} {
			if got := size(n); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

func TestChoose(t *testing.T) {
	t.Run("an unknown measurement is refused, with those there are", func(t *testing.T) {
		if _, err := choose("rest,nothing"); err == nil || !strings.Contains(err.Error(), `"nothing"`) || !strings.Contains(err.Error(), "memory") {
			t.Errorf("got %v, want it to name what is there", err)
		}
	})

	t.Run("only what is named is measured, in the order of the table", func(t *testing.T) {
		chosen, err := choose("tick,rest")
		if err != nil || len(chosen) != 2 || chosen[0].name != "rest" || chosen[1].name != "tick" {
			t.Errorf("got %v, %v, want rest and tick", chosen, err)
		}
	})
}

func TestGoBenchmarks(t *testing.T) {
	t.Run("a line of a benchmark is read", func(t *testing.T) {
		name, metrics, ok := parse("BenchmarkAccept/20_producers_of_32-2  \t 15\t 485 ns/op\t 36945 bare/s\t 1.323 ratio")
		want := map[string]float64{"ns/op": 485, "bare/s": 36945, "ratio": 1.323}
		if !ok || name != "20_producers_of_32" || !maps.Equal(metrics, want) {
			t.Errorf("got %q, %v, %v, want %v", name, metrics, ok, want)
		}
	})

	t.Run("of several runs the median of each metric counts", func(t *testing.T) {
		all := medians("goos: linux\nBenchmarkTick/a-2 1 3 ns/op\nBenchmarkTick/b-2 1 7 ns/op\nBenchmarkTick/a-2 1 1 ns/op\nBenchmarkTick/a-2 1 9 ns/op\nPASS\n")
		if len(all) != 2 || all["a"]["ns/op"] != 3 || all["b"]["ns/op"] != 7 {
			t.Errorf("got %v, want a: 3 and b: 7", all)
		}
	})

	t.Run("other lines are not", func(t *testing.T) {
		for _, line := range []string{"", "PASS", "goos: linux", "ok  \tleasehold/engine\t2.5s", "BenchmarkTick/unchanged", "BenchmarkTick/x-2 1 much ns/op"} {
			if name, metrics, ok := parse(line); ok {
				t.Errorf("%q: got %q, %v, want nothing", line, name, metrics)
			}
		}
	})
}

// A measurement of rest is worth what its look at the folder is.
func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look := func() map[string]file {
		t.Helper()
		all, err := fingerprint(dir)
		if err != nil {
			t.Fatal(err)
		}
		delete(all, dir) // its own time changes with what is in it
		return all
	}
	write("a", "one")
	write("b", "two")
	before := look()
	if n := different(before, look()); n != 0 {
		t.Errorf("nothing happened: got %d files changed, want 0", n)
	}

	t.Run("another content under the same size and time is a change", func(t *testing.T) {
		write("a", "eno")
		was := before[filepath.Join(dir, "a")].modified
		if err := os.Chtimes(filepath.Join(dir, "a"), was, was); err != nil {
			t.Fatal(err)
		}
		if n := different(before, look()); n != 1 {
			t.Errorf("got %d files changed, want 1", n)
		}
		write("a", "one")
	})

	t.Run("another time of the same content is a change", func(t *testing.T) {
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(filepath.Join(dir, "a"), later, later); err != nil {
			t.Fatal(err)
		}
		was := before[filepath.Join(dir, "a")].modified
		if n := different(before, look()); n != 1 {
			t.Errorf("got %d files changed, want 1", n)
		}
		if err := os.Chtimes(filepath.Join(dir, "a"), was, was); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("a file that came and one that went are changes", func(t *testing.T) {
		write("c", "three")
		if err := os.Remove(filepath.Join(dir, "b")); err != nil {
			t.Fatal(err)
		}
		if n := different(before, look()); n != 2 {
			t.Errorf("got %d files changed, want 2", n)
		}
	})
}

func TestTail(t *testing.T) {
	t.Run("the last words of a process are kept, and no more", func(t *testing.T) {
		var said tail
		for range 1000 {
			_, _ = said.Write([]byte("word word word\n"))
		}
		_, _ = said.Write([]byte("the end\n"))
		if got := said.text(); len(got) > 2<<10 || !strings.HasSuffix(got, "the end") {
			t.Errorf("got %d bytes that end in %q, want the end of what was said", len(got), got[max(0, len(got)-10):])
		}
	})
}

func TestPlatform(t *testing.T) {
	serve := func(t *testing.T, told string) (said string, err error) {
		t.Helper()
		var out bytes.Buffer
		err = servePlatform(t.Context(), strings.NewReader(told), &out)
		return out.String(), err
	}

	t.Run("it says where it is and what it has, and ends when nobody speaks to it", func(t *testing.T) {
		said, err := serve(t, "push bot-0001 3\nlive\n")
		if err != nil || !strings.HasPrefix(said, "address ws://127.0.0.1:") || !strings.HasSuffix(said, "\nlive 0 0\n") {
			t.Errorf("got %q, %v, want its address and no connections", said, err)
		}
	})

	t.Run("what it does not know ends it", func(t *testing.T) {
		if _, err := serve(t, "sing\n"); err == nil || !strings.Contains(err.Error(), `"sing"`) {
			t.Errorf("got %v, want it to name the word", err)
		}
	})
}

func TestCourier(t *testing.T) {
	t.Run("what arrives is compared with what left first of the same bot", func(t *testing.T) {
		c := &courier{sent: map[string][]time.Time{}}
		from := func(bot string) []byte { return fmt.Appendf(nil, `{"data":{"installation":{"id":%q}}}`, bot) }
		c.arrived(from("a"), time.Now()) // of what was pushed to get warm
		c.start()
		c.leaves("a")
		c.leaves("b")
		c.leaves("a")
		for i, bot := range []string{"b", "a", "nobody", "a"} {
			c.arrived(from(bot), time.Now().Add(time.Duration(i+1)*time.Hour))
		}
		took := c.sorted()
		if len(took) != 3 || took[0].Round(time.Hour) != time.Hour || took[2].Round(time.Hour) != 4*time.Hour {
			t.Errorf("got %v, want 1 h, 2 h and 4 h", took)
		}
		if p50, p99 := quantile(took, 50), quantile(took, 99); p50 != took[1] || p99 != took[2] {
			t.Errorf("got %v and %v, want the middle and the last", p50, p99)
		}
	})
}
