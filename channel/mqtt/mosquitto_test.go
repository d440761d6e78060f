//go:build unix

package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/internal/freeport"
	"leasehold/internal/loop"
	"leasehold/internal/need"
)

// mosquitto is a broker as Debian ships it, in a process of its own.
type mosquitto struct {
	*live
	dir  string
	port string
	cmd  *exec.Cmd
}

// startMosquitto runs a broker that keeps its sessions on disk and knows one user,
// me, by the token; whoever has no name is let in, too.
func startMosquitto(t *testing.T, listeners ...string) *mosquitto {
	t.Helper()
	need.Tool(t, "mosquitto", "mosquitto")
	m := &mosquitto{dir: t.TempDir(), port: strconv.Itoa(freeport.Of(t))}
	users := filepath.Join(m.dir, "users")
	if err := os.WriteFile(users, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mosquitto_passwd", "-b", users, me, token).CombinedOutput(); err != nil {
		t.Fatalf("make a user: %v: %s", err, out)
	}
	conf := []string{
		"listener " + m.port + " 127.0.0.1", "allow_anonymous true", "password_file " + users,
		"persistence true", "persistence_location " + m.dir + "/", "max_queued_messages 0", "log_dest none",
	}
	if os.Geteuid() == 0 {
		conf = append(conf, "user root") // else it gives up the right to read its own files
	}
	conf = append(conf, listeners...)
	if err := os.WriteFile(m.conf(), []byte(strings.Join(conf, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.live = newLive(t, "127.0.0.1:"+m.port)
	m.run()
	t.Cleanup(func() { m.kill(syscall.SIGKILL) })
	return m
}

func (m *mosquitto) conf() string { return filepath.Join(m.dir, "mosquitto.conf") }

// run starts the broker and waits until it listens.
func (m *mosquitto) run() {
	m.Helper()
	m.cmd = exec.CommandContext(context.WithoutCancel(m.Context()), "mosquitto", "-c", m.conf())
	if err := m.cmd.Start(); err != nil {
		m.Fatal(err)
	}
	m.listens(m.address)
}

func (m *mosquitto) listens(address string) {
	m.Helper()
	var d net.Dialer
	m.eventually("mosquitto listens", func() bool {
		c, err := d.DialContext(m.Context(), "tcp", address)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

func (m *mosquitto) signal(s syscall.Signal) {
	m.Helper()
	if err := m.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		m.Fatal(err)
	}
}

// kill ends the broker.
func (m *mosquitto) kill(s syscall.Signal) {
	m.Helper()
	if m.cmd.ProcessState != nil {
		return
	}
	m.signal(syscall.SIGCONT)
	m.signal(s)
	_ = m.cmd.Wait() // its status is that of the signal
}

func (m *mosquitto) restart(s syscall.Signal) {
	m.Helper()
	m.kill(s)
	m.run()
}

func eachVersion(t *testing.T, f func(m *mosquitto)) {
	t.Helper()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			m := startMosquitto(t)
			m.config["version"] = version
			f(m)
		})
	}
}

func TestTheRightPasswordAtMosquitto(t *testing.T) {
	eachVersion(t, func(m *mosquitto) {
		m.config["username"], m.config["password"] = me, map[string]string{"env": "TOKEN"}
		b, _ := m.connected()
		m.publish(1, 1, false)
		m.kept(1)
		m.stop(b)
	})
}

func TestABrokerThatIsKilledIsNoticedAtOnce(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			eachVersion(t, func(m *mosquitto) {
				m.config["keep_alive"] = "10m" // by its silence it would be noticed after twice that
				b, _ := m.connected()
				start := time.Now()
				m.kill(signal)
				got := channel.Classify(b.Wait())
				if took := time.Since(start); took > busy {
					m.Errorf("got it noticed after %s, want at once", took)
				}
				if got.Class != channel.Transient {
					m.Errorf("got %s (%v), want transient", got.Class, got.Err)
				}
			})
		})
	}
}

func TestABrokerThatStandsStillIsNoticedWithinTwiceTheKeepAlive(t *testing.T) {
	eachVersion(t, func(m *mosquitto) {
		m.config["keep_alive"] = "1s"
		b, _ := m.connected()
		m.publish(3, 1, false)
		m.kept(3)
		start := time.Now()
		m.signal(syscall.SIGSTOP)
		got := channel.Classify(b.Wait())
		if took := time.Since(start); took > 2*time.Second+busy {
			m.Errorf("got it noticed after %s, want at most 2s", took)
		}
		if got.Code != "silent" {
			m.Errorf("got %q (%v), want silent", got.Code, got.Err)
		}
		m.signal(syscall.SIGCONT)
		b, _ = m.connected() // it kept the session
		m.publish(1, 1, false)
		m.kept(4)
		m.stop(b)
	})
}

func TestABrokerThatComesBackWithItsDiskHasOurSession(t *testing.T) {
	eachVersion(t, func(m *mosquitto) {
		b, _ := m.connected()
		m.publish(10, 1, false)
		m.kept(10)
		m.stop(b)
		m.publish(10, 1, false) // equal to the first ten
		m.restart(syscall.SIGTERM)
		b, _ = m.connected()
		m.kept(20)
		if got := b.Notices(); len(got) != 0 {
			m.Errorf("got the notices %v, want none", got)
		}
		m.stop(b)
	})
}

func TestABrokerThatComesBackWithoutItsDiskIsTold(t *testing.T) {
	eachVersion(t, func(m *mosquitto) {
		b, _ := m.connected()
		m.kill(syscall.SIGKILL)
		_ = b.Wait()
		if err := os.Remove(filepath.Join(m.dir, "mosquitto.db")); err != nil && !errors.Is(err, os.ErrNotExist) {
			m.Fatal(err)
		}
		m.run()
		b, _ = m.connected()
		if got := b.Notices(); len(got) != 1 || got[0].Code != "session_lost" {
			m.Errorf("got the notices %v, want session_lost", got)
		}
		m.publish(1, 1, false) // it has subscribed again
		m.kept(1)
		m.stop(b)
	})
}

// A store that is killed, a broker that is killed and a line that is cut, by turns,
// under a stream of equal payloads: nothing that was acknowledged is lost, and
// nothing of it is twice.
func TestAStormLosesNothingThatWasAcknowledged(t *testing.T) {
	eachVersion(t, func(m *mosquitto) {
		const each = 40
		b, _ := m.connected()
		for round := range 9 {
			c := m.client("publisher")
			for range each {
				m.took(c.Publish("devices/x", 1, false, "same"))
			}
			c.Disconnect(100)
			switch round % 3 {
			case 0:
				b.Kill()
			case 1:
				m.proxy.Cut()
			case 2:
				m.restart(syscall.SIGTERM) // it saves what it knows
			}
			_ = b.Wait()
			if err := loop.Sleep(m.Context(), time.Millisecond); err != nil {
				m.Fatal(err)
			}
			b, _ = m.connected()
			m.eventually(fmt.Sprintf("round %d heard", round), func() bool { return len(m.memory.Events()) >= (round+1)*each })
		}
		m.kept(9 * each)
		m.stop(b)
	})
}

// This broker may send ten times what it was told to, the longer a burst the more,
// before it hears an acknowledgement: all of it comes again after a cut.
func TestACutWithinABurstRepeatsNothing(t *testing.T) {
	eachVersion(t, func(m *mosquitto) {
		b, _ := m.connected()
		for round := range 3 {
			m.publish(2000, 1, false)
			m.eventually("half of it heard", func() bool { return len(m.memory.Events()) >= round*2000+1000 })
			m.proxy.Cut()
			_ = b.Wait()
			b, _ = m.connected()
			m.eventually("all of it heard", func() bool { return len(m.memory.Events()) >= (round+1)*2000 })
		}
		m.kept(6000)
		m.stop(b)
	})
}
