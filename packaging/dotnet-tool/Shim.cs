// The command of the `dotnet tool` package: replaces itself by the program `clrscope`, which lies beside it.
//
// The process stays the same: its number, terminal, streams and signals are those that the user sees.
using System;
using System.IO;
using System.Runtime.InteropServices;

internal static class Shim
{
    // What clrscope ends with where it could not do what it was asked for; under `run` 125, as 1 could be the program's.
    private const int Failed = 1, RunFailed = 125;
    // Errors of execv(3) and the signal that .NET ignores for itself (signal(7)).
    private const int NotFound = 2, NotPermitted = 13, BrokenPipe = 13;
    private static readonly IntPtr Default = IntPtr.Zero;

    // With the variables as the system has them, and not as text of .NET.
    [DllImport("libc", EntryPoint = "execv", SetLastError = true)]
    private static extern int Replace(string path, string?[] words);

    [DllImport("libc", EntryPoint = "signal")]
    private static extern IntPtr Handle(int signal, IntPtr handler);

    private static int Main(string[] words)
    {
        // The C library of this runtime: glibc, or musl as in Alpine Linux.
        string system = RuntimeInformation.RuntimeIdentifier;
        system = system.Contains("musl") || system.StartsWith("alpine") ? "linux-musl-x64" : "linux-x64";
        string program = Path.Combine(AppContext.BaseDirectory, system, "clrscope");
        int code = words.Length > 0 && words[0] == "run" ? RunFailed : Failed;
        if (!OperatingSystem.IsLinux() || RuntimeInformation.ProcessArchitecture != Architecture.X64)
            return Refuse(code, $"it is for Linux on x64, and this is {RuntimeInformation.RuntimeIdentifier}", "use it on such a machine");
        try
        {
            // Packages keep no modes.
            UnixFileMode mode = File.GetUnixFileMode(program);
            if (!mode.HasFlag(UnixFileMode.UserExecute))
                File.SetUnixFileMode(program, mode | UnixFileMode.UserExecute | UnixFileMode.GroupExecute | UnixFileMode.OtherExecute);
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            return Refuse(code, error.Message, "install the tool again, as the user who uses it");
        }
        // A program that is replaced hands on what it ignores; clrscope's own program must not be born with that.
        IntPtr ignored = Handle(BrokenPipe, Default);
        Replace(program, [program, .. words, null]);
        int found = Marshal.GetLastPInvokeError();
        Handle(BrokenPipe, ignored);
        return found == NotFound && File.Exists(program)
            ? Refuse(code, "this system lacks the dynamic loader of glibc", "use it in an image with glibc, such as Debian's, or with .NET for musl, such as Alpine's")
            : Refuse(code, Marshal.GetPInvokeErrorMessage(found), found == NotPermitted ? "install the tool into a folder that programs may run in" : "install the tool again");
    }

    private static int Refuse(int code, string why, string hint)
    {
        Console.Error.WriteLine($"error: cannot start clrscope\nwhy: {why}\nhint: {hint}");
        return code;
    }
}
