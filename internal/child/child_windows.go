package child

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// leaves: the system closes the job with its last handle, ours, and kills all that
// is in it. Nothing is left for a record.
const leaves = false

func adopt() {} // a job needs no parent

// attributes start the program suspended: nothing of it runs outside the job.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// begun puts the suspended program into a job of its own and lets it run.
func (c *Child) begun() (identity, error) {
	id := identity{PID: c.process.Pid}
	job, err := newJob()
	if err != nil {
		return id, err
	}
	c.clan.job = job
	pid := uint32(c.process.Pid)
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err == nil {
		err = windows.AssignProcessToJobObject(job, process)
		_ = windows.CloseHandle(process) // the job has it
	}
	if err != nil {
		err = fmt.Errorf("put it into a job: %w", err)
	} else {
		err = resume(pid)
	}
	if err != nil {
		_ = windows.CloseHandle(job) // which kills what is in it
	}
	return id, err
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("make a job: %w", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, fmt.Errorf("set up a job: %w", err)
	}
	return job, nil
}

// resume lets the threads of a process run; one that was started suspended has one.
func resume(pid uint32) error {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("look for its thread: %w", err)
	}
	defer func() { _ = windows.CloseHandle(all) }()
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(all, &entry); err == nil; err = windows.Thread32Next(all, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return fmt.Errorf("open its thread: %w", err)
		}
		_, err = windows.ResumeThread(thread)
		_ = windows.CloseHandle(thread)
		if err != nil {
			return fmt.Errorf("resume its thread: %w", err)
		}
		return nil
	}
	return errors.New("resume it: it has no thread")
}

// terminate does nothing: there is no signal that asks a program without a console.
// Its standard input tells it.
func (c *Child) terminate() {}

func (c *Child) kill() { _ = windows.TerminateJobObject(c.clan.job, 1) }

func (k *Keeper) await(c *Child) End {
	state, _ := c.process.Wait()
	c.over()
	_ = windows.TerminateJobObject(c.clan.job, 1)
	_ = windows.CloseHandle(c.clan.job)
	return End{State: state}
}

// clan is a program, and the job that it and all that it starts are in.
type clan struct {
	marker string
	leader identity
	job    windows.Handle
}

func (f clan) end() (killed, alive int) { return 0, 0 }

func boot() string { return "" }

func startOf(int) (uint64, bool) { return 0, false }

// Look does nothing: the job knows.
func (k *Keeper) Look() {}
