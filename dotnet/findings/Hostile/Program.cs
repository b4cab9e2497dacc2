using System.Collections.Concurrent;
using System.Diagnostics;
using System.Linq.Expressions;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Runtime.Loader;
using System.Text;
using System.Text.RegularExpressions;
using System.Globalization;
namespace S;
public static unsafe partial class P
{
    public static Dictionary<string,Action<string[]>> Cases = new();
    static int exitCode;
    public static void Count(string f,long n)=>Console.WriteLine($"COUNT\t{f}\t{n}");
    [MethodImpl(MethodImplOptions.NoInlining)] public static int Leaf(int x)=>x+1;
    static int Main(string[] a)
    {
        Register(); Register2();
        if(a.Length==0){ foreach(var k in Cases.Keys) Console.WriteLine(k); return 0; }
        Cases[a[0]](a.Skip(1).ToArray());
        return exitCode;
    }
    const string NAT="libnat.so";
    [DllImport(NAT)] static extern long nat_threads(delegate* unmanaged<int,int> f,int t,int n);
    [DllImport(NAT)] static extern long nat_short_threads(delegate* unmanaged<int,int> f,int t);
    [DllImport(NAT)] static extern int nat_call(delegate* unmanaged<int,int> f,int n);
    [DllImport(NAT,EntryPoint="nat_call")] static extern int nat_call_d(IntCb f,int n);
    [DllImport(NAT)] static extern int nat_fork_exit(int c);
    [DllImport(NAT)] static extern int nat_fork_call(delegate* unmanaged<int,int> f,int n);
    [DllImport(NAT)] static extern long nat_eat_maps(int leave);
    [DllImport(NAT)] static extern int nat_rlimit_as(long b);
    [DllImport(NAT)] static extern int nat_kill_self(int s);
    [DllImport(NAT)] static extern int nat_raise(int s);
    [DllImport(NAT)] static extern int nat_segv();
    [DllImport(NAT)] static extern int nat_abort();
    [DllImport(NAT)] static extern int nat_setjmp_call(delegate* unmanaged<int,int> f,int n);
    [DllImport(NAT)] static extern int nat_fiber(delegate* unmanaged<int,int> f);
    [DllImport(NAT)] static extern int nat_mask_all();
    [DllImport("libc")] static extern void qsort(int* p,nint n,nint s,delegate* unmanaged[Cdecl]<int*,int*,int> c);
    [DllImport("libc",EntryPoint="_exit")] static extern void uexit(int c);
    [DllImport("libc",EntryPoint="exit")] static extern void cexit(int c);
    [DllImport("libc",EntryPoint="getpid")] static extern int getpid();
    delegate int IntCb(int x);
    static long cmpCalls;
    [UnmanagedCallersOnly(CallConvs=new[]{typeof(CallConvCdecl)})] static int Cmp(int* a,int* b){ cmpCalls++; return *a<*b?-1:*a>*b?1:0; }
    [UnmanagedCallersOnly] static int Cb(int x)=>Leaf(x);
    [UnmanagedCallersOnly] static int CbRec(int x)=>x==0?0:1+nat_call(&CbRec,x-1);
    [UnmanagedCallersOnly] static int CbThrowCatch(int x){ try{ Thrower(x); }catch(InvalidOperationException){ return Leaf(x);} return 0; }
    [UnmanagedCallersOnly] static int CbThrow(int x){ throw new InvalidOperationException("through native "+x); }
    static int CbThrowD(int x){ throw new InvalidOperationException("through native delegate "+x); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Thrower(int x){ throw new InvalidOperationException("x"+x); }

    static void Register()
    {
        Cases["hello"]=a=>Console.WriteLine("hello");
        Cases["qsort"]=a=>{ var r=new Random(5); var v=new int[200000]; for(int i=0;i<v.Length;i++)v[i]=r.Next(); fixed(int* p=v) qsort(p,v.Length,4,&Cmp); for(int i=1;i<v.Length;i++) if(v[i-1]>v[i]) throw new Exception(); Count("S.P::Cmp",cmpCalls); };
        Cases["natthreads"]=a=>{ var s=nat_threads(&Cb,32,20000); Console.WriteLine(s); Count("S.P::Cb",32*20000); Count("S.P::Leaf",32*20000); };
        Cases["natshort"]=a=>{ var s=nat_short_threads(&Cb,3000); Console.WriteLine(s); Count("S.P::Cb",3000); Count("S.P::Leaf",3000); };
        Cases["natrec"]=a=>{ Console.WriteLine(nat_call(&CbRec,2000)); Count("S.P::CbRec",2001); };
        Cases["natthrowcatch"]=a=>{ long s=0; for(int i=0;i<2000;i++) s+=nat_call(&CbThrowCatch,i); Console.WriteLine(s); Count("S.P::CbThrowCatch",2000); Count("S.P::Thrower",2000); Count("S.P::Leaf",2000); };
        Cases["natthrow"]=a=>{ try{ nat_call(&CbThrow,3);}catch(Exception e){ Console.WriteLine("caught "+e.Message);} };
        Cases["natthrowd"]=a=>{ try{ nat_call_d(CbThrowD,3);}catch(Exception e){ Console.WriteLine("caught "+e.Message);} };
        Cases["fiber"]=a=>{ Console.WriteLine(nat_fiber(&Cb)); Count("S.P::Cb",1); Leaf(1); Count("S.P::Leaf",2); };
        Cases["fork"]=a=>{ Console.WriteLine(nat_fork_exit(7)); for(int i=0;i<50;i++) if(nat_fork_exit(i)!=i) throw new Exception(); Leaf(2); Count("S.P::Leaf",1); };
        Cases["forkcall"]=a=>{ Console.WriteLine(nat_fork_call(&Cb,41)); Leaf(2); };
        Cases["tail"]=a=>{};
        Cases["span"]=a=>{ long s=0; for(int i=0;i<20000;i++) s+=SpanWork(i%4000); Console.WriteLine(s); Count("S.P::SpanWork",20000); };
        Cases["cctor"]=a=>{ int n=0; for(int i=0;i<1000;i++) try{ BadCctor.Use(); }catch(TypeInitializationException e){ n++; if(i==0) Console.WriteLine(e.InnerException.Message);} Console.WriteLine(n); 
            for(int i=0;i<300;i++){ var t=typeof(GenBad<>).MakeGenericType(KT(i)); try{ RuntimeHelpers.RunClassConstructor(t.TypeHandle);}catch(TypeInitializationException){n++;} } Console.WriteLine(n); };
        Cases["filter"]=a=>{ int n=0; for(int i=0;i<3000;i++){ try{ FilterThrow(i);}catch(ArgumentException){n++;} } Console.WriteLine(n); Count("S.P::FilterThrow",3000); Count("S.P::BadFilter",3000); Count("S.P::Thrower",3000);};
        Cases["finally"]=a=>{ int n=0; for(int i=0;i<2000;i++){ try{ n+=NestedFinally(i,6);}catch(InvalidOperationException e){ n+=e.Message.Length;} } Console.WriteLine(n+" "+fin); Count("S.P::NestedFinally",2000*7); };
        Cases["finallyreplace"]=a=>{ int n=0; for(int i=0;i<2000;i++){ try{ FinallyReplace(i);}catch(ArithmeticException e){ n+=e.Message.Length; } } Console.WriteLine(n); Count("S.P::FinallyReplace",2000); Count("S.P::Thrower",2000); };
        Cases["rethrow"]=a=>{ int n=0; for(int i=0;i<300;i++){ try{ Rethrow(20);}catch(Exception e){ n++; } } Console.WriteLine(n); Count("S.P::Rethrow",300*21); };
        Cases["deepthrow"]=a=>{ int n=0; for(int i=0;i<20;i++){ try{ DeepThrow(1000);}catch(Exception e){ n++; } } Console.WriteLine(n); Count("S.P::DeepThrow",20*1001); };
        Cases["throwbench"]=a=>{ int n=0; var sw=Stopwatch.StartNew(); for(int i=0;i<100000;i++){ try{ Thrower(i);}catch(InvalidOperationException){ n++; } } Console.WriteLine(n); Count("S.P::Thrower",100000);  };
        Cases["interrupt"]=a=>{ int n=0; for(int i=0;i<300;i++){ var ev=new ManualResetEventSlim(); var t=new Thread(()=>{ try{ ev.Set(); while(true){ Thread.Sleep(Timeout.Infinite);} }catch(ThreadInterruptedException){ Interlocked.Increment(ref n);} }); t.Start(); ev.Wait(); t.Interrupt(); t.Join(); } Console.WriteLine(n); };
        Cases["starve"]=a=>{ ThreadPool.SetMinThreads(2,2); int n=0; var l=new List<Task>(); for(int i=0;i<40;i++) l.Add(Task.Run(()=>{ Task.Run(()=>{Interlocked.Increment(ref n); Leaf(1);}).Wait(); })); Task.WaitAll(l.ToArray()); Console.WriteLine(n); Count("S.P::Leaf",40); };
        Cases["threads5000"]=a=>{ int N=a.Length>0?int.Parse(a[0]):5000; var ts=new Thread[N]; var go=new ManualResetEventSlim(); int n=0; for(int i=0;i<ts.Length;i++){ ts[i]=new Thread(()=>{ go.Wait(); for(int k=0;k<100;k++) Leaf(k); Interlocked.Increment(ref n); },256*1024); ts[i].Start(); } go.Set(); foreach(var t in ts) t.Join(); Console.WriteLine(n); Count("S.P::Leaf",N*100L); };
        Cases["threadchurn"]=a=>{ int n=0; for(int i=0;i<5000;i++){ var t=new Thread(()=>{ Leaf(n); Interlocked.Increment(ref n); },128*1024); t.Start(); t.Join(); } Console.WriteLine(n); Count("S.P::Leaf",5000); };
        Cases["asyncstream"]=a=>{ AsyncStream().Wait(); };
        Cases["cancel"]=a=>{ Cancel().Wait(); };
        Cases["exitinfinally"]=a=>{ try{ throw new Exception("a"); }catch{ } finally{ Console.WriteLine("fin"); Environment.Exit(33);} };
        Cases["exitinfinally2"]=a=>{ try{ try{ throw new Exception("a"); } finally{ Console.WriteLine("fin"); Environment.Exit(34);} }catch(InvalidCastException){} };
        Cases["exitthread"]=a=>{ var t=new Thread(()=>Environment.Exit(35)); t.Start(); t.Join(); Thread.Sleep(100000); };
        Cases["exitmany"]=a=>{ for(int i=0;i<20;i++) new Thread(()=>{ while(true) Leaf(1);}){IsBackground=true}.Start(); Thread.Sleep(200); Environment.Exit(36); };
        Cases["failfast"]=a=>{ Leaf(1); Environment.FailFast("failfast message", new Exception("inner")); };
        Cases["so"]=a=>{ Console.WriteLine("go"); Console.Out.Flush(); Console.WriteLine(So(0)); };
        Cases["sothread"]=a=>{ var t=new Thread(()=>So(0),1<<20); t.Start(); t.Join(); };
        Cases["unhandled"]=a=>{ throw new InvalidOperationException("unhandled boo"); };
        Cases["unhandledpool"]=a=>{ ThreadPool.QueueUserWorkItem(_=>throw new InvalidOperationException("pool boo")); Thread.Sleep(100000); };
        Cases["unhandledthread"]=a=>{ var t=new Thread(()=>Thrower(1)); t.Start(); t.Join(); Thread.Sleep(5000); };
        Cases["unhandledhandler"]=a=>{ AppDomain.CurrentDomain.UnhandledException+=(s,e)=>{ Console.WriteLine("handler "+((Exception)e.ExceptionObject).Message); Environment.Exit(37); }; throw new InvalidOperationException("handled boo"); };
        Cases["finalizerthrow"]=a=>{ MakeBadFin(); GC.Collect(); GC.WaitForPendingFinalizers(); Thread.Sleep(5000); };
        Cases["finalizers"]=a=>{ for(int i=0;i<20000;i++) new Fin(); GC.Collect(); GC.WaitForPendingFinalizers(); GC.Collect(); GC.WaitForPendingFinalizers(); Console.WriteLine(Fin.n>=19990); };
        Cases["resurrect"]=a=>{ for(int i=0;i<100;i++){ new Res(); GC.Collect(); GC.WaitForPendingFinalizers(); } Console.WriteLine(Res.n>0); };
        Cases["processexit"]=a=>{ AppDomain.CurrentDomain.ProcessExit+=(s,e)=>{ for(int i=0;i<20;i++){ Thread.Sleep(100); Leaf(i);} Console.WriteLine("exit handler done"); Count("S.P::Leaf",20); }; };
        Cases["processexitthrow"]=a=>{ AppDomain.CurrentDomain.ProcessExit+=(s,e)=>{ Console.WriteLine("in handler"); throw new Exception("in exit"); }; };
        Cases["processexitexit"]=a=>{ AppDomain.CurrentDomain.ProcessExit+=(s,e)=>{ Console.WriteLine("in handler"); Environment.ExitCode=44; }; exitCode=3; };
        Cases["mainblocked"]=a=>{ new Thread(()=>{ Thread.Sleep(300); Console.WriteLine("late"); }).Start(); };
        Cases["cancelkey"]=a=>{ Console.CancelKeyPress+=(s,e)=>{ Console.WriteLine("cancel "+e.SpecialKey); e.Cancel=true; ev.Set(); }; Console.WriteLine("ready"); Task.Run(()=>nat_kill_self(2)); ev.Wait(5000); Console.WriteLine("after"); };
        Cases["posixsig"]=a=>{ using var r=PosixSignalRegistration.Create(PosixSignal.SIGTERM,c=>{ Console.WriteLine("term"); c.Cancel=true; ev.Set(); }); using var r2=PosixSignalRegistration.Create(PosixSignal.SIGHUP,c=>{ Console.WriteLine("hup"); c.Cancel=true; ev2.Set(); }); nat_kill_self(15); ev.Wait(5000); nat_kill_self(1); ev2.Wait(5000); Console.WriteLine("after"); };
        foreach(var (n,s) in new[]{("term",15),("int",2),("hup",1),("quit",3),("usr1",10),("usr2",12),("abrt",6),("segv",11),("kill",9),("pipe",13),("alrm",14),("fpe",8),("ill",4),("bus",7),("trap",5),("xcpu",24),("sys",31)}) { var ss=s; Cases["sig"+n]=a=>{ Console.WriteLine("self"); Console.Out.Flush(); nat_kill_self(ss); Thread.Sleep(1500); Console.WriteLine("survived"); }; }
        Cases["segv"]=a=>{ Console.WriteLine("go"); Console.Out.Flush(); nat_segv(); };
        Cases["nullref"]=a=>{ int n=0; for(int i=0;i<20000;i++){ try{ NullRef(null);}catch(NullReferenceException){n++;} } Console.WriteLine(n); Count("S.P::NullRef",20000); };
        Cases["abort"]=a=>{ Console.WriteLine("go"); Console.Out.Flush(); nat_abort(); };
        Cases["uexit"]=a=>{ Leaf(1); Console.WriteLine("u"); Console.Out.Flush(); uexit(21); };
        Cases["cexit"]=a=>{ Leaf(1); Console.WriteLine("c"); Console.Out.Flush(); cexit(22); };
        Cases["alc"]=a=>{ int N=a.Length>0?int.Parse(a[0]):200; for(int i=0;i<N;i++){ AlcOnce(); if(i%10==0){ GC.Collect(); GC.WaitForPendingFinalizers(); } } Console.WriteLine("ok"); };
        Cases["deep"]=a=>{ int N=a.Length>0?int.Parse(a[0]):100000; int r=0; var t=new Thread(()=>r=Deep(N),1<<30); t.Start(); t.Join(); Console.WriteLine(r); Count("S.P::Deep",N+1); };
        Cases["deeptwice"]=a=>{ int N=100000; int r=0; var t=new Thread(()=>{for(int i=0;i<5;i++) r=Deep(N);},1<<30); t.Start(); t.Join(); Console.WriteLine(r); Count("S.P::Deep",5*(N+1)); };
        Cases["insuff"]=a=>{ int c=0; for(int i=0;i<5;i++) try{ Insuff(0);}catch(InsufficientExecutionStackException){c++;} Console.WriteLine(c); };
        Cases["oom"]=a=>{ var l=new List<byte[]>(); int c=0; for(int k=0;k<20;k++){ try{ while(true) l.Add(new byte[1<<20]); }catch(OutOfMemoryException){ c++; l.Clear(); GC.Collect(); } } Console.WriteLine(c); };
        Cases["hugearray"]=a=>{ int c=0; for(int i=0;i<100;i++) try{ var x=new long[int.MaxValue/2,16]; }catch(OutOfMemoryException){c++;} Console.WriteLine(c); };
        Cases["closefds"]=a=>{ Console.WriteLine("before"); Console.Out.Flush(); Console.In.Close(); close(0); close(1); for(int i=0;i<1000;i++) Leaf(i); try{ Console.WriteLine("x"); }catch{} close(2); };
        Cases["maps"]=a=>{ var n=nat_eat_maps(0); bool ok=n>10000; int c=0; try{ for(int i=0;i<2000;i++) c+=Leaf(i);}catch(Exception e){ Console.WriteLine(e.GetType()); } Console.WriteLine(ok); Console.Out.Flush(); uexit(5); };
        Cases["mapsmore"]=a=>{ var n=nat_eat_maps(0); Console.WriteLine(n>10000); Console.Out.Flush(); int c=0; for(int i=0;i<64;i++){ var t=new Thread(()=>{ for(int k=0;k<1000;k++) Leaf(k);}); t.Start(); t.Join(); c++; } Console.WriteLine(c); };
        Cases["rlimitas"]=a=>{ Console.WriteLine(nat_rlimit_as(1L<<20)); int c=0; for(int i=0;i<200;i++){ try{ var x=new byte[1<<22]; c++; }catch(OutOfMemoryException){ } } for(int i=0;i<1000;i++) Leaf(i); Console.WriteLine("done"); };
        Cases["maskall"]=a=>{ nat_mask_all(); for(int i=0;i<5;i++){ GC.Collect(); Leaf(i);} Task.Run(()=>GC.Collect()).Wait(); Console.WriteLine("ok"); };
        Cases["setjmp"]=a=>{ Console.WriteLine(nat_setjmp_call(&Cb,4)); };
        Cases["cwddel"]=a=>{ var d=Directory.CreateTempSubdirectory("cw").FullName; Directory.SetCurrentDirectory(d); Directory.Delete(d); Leaf(1); Console.WriteLine("ok"); };
        Cases["clearenv"]=a=>{ foreach(string k in Environment.GetEnvironmentVariables().Keys) Environment.SetEnvironmentVariable(k,null); Console.WriteLine(Environment.GetEnvironmentVariables().Count); };
        Cases["env"]=a=>{ foreach(var k in Environment.GetEnvironmentVariables().Keys.Cast<string>().Order()) Console.WriteLine(k); };
        Cases["args"]=a=>{ Console.WriteLine(string.Join("|",a)); Console.WriteLine(Environment.CommandLine); Console.WriteLine(string.Join("|",Environment.GetCommandLineArgs())); };
        Cases["stdin"]=a=>{ string l; int n=0; while((l=Console.ReadLine())!=null){ n+=l.Length; } Console.WriteLine(n); };
        Cases["bigout"]=a=>{ var sb=new string('x',1000); for(int i=0;i<20000;i++) Console.WriteLine(sb); };
        Cases["tty"]=a=>{ Console.WriteLine($"{Console.IsInputRedirected} {Console.IsOutputRedirected} {Console.IsErrorRedirected}"); };
        Cases["stacktrace"]=a=>{ try{ ST1(); }catch(Exception e){ Console.WriteLine(e.ToString()); } Console.WriteLine(new StackTrace(true).ToString()); };
        Cases["envstack"]=a=>{ foreach(var x in new[]{3,1,2}.Select(x=>StDepth()).ToArray()) Console.WriteLine(x); };
        Cases["firstchance"]=a=>{ int n=0; AppDomain.CurrentDomain.FirstChanceException+=(s,e)=>{ n++; Leaf(n); }; for(int i=0;i<1000;i++) try{ Thrower(i);}catch(InvalidOperationException){} Console.WriteLine(n); Count("S.P::Leaf",1000); Count("S.P::Thrower",1000); };
        Cases["firstchancethrow"]=a=>{ int n=0; AppDomain.CurrentDomain.FirstChanceException+=(s,e)=>{ if(n++<400) try{ throw new ArgumentException("inner"); }catch(ArgumentException){} }; for(int i=0;i<100;i++) try{ Thrower(i);}catch(InvalidOperationException){} Console.WriteLine(n); Count("S.P::Thrower",100); };
    }
    static ManualResetEventSlim ev=new(), ev2=new();
    [DllImport("libc")] static extern int close(int fd);
    class O{ public int x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static int NullRef(O o)=>o.x;
    [MethodImpl(MethodImplOptions.NoInlining)] static int StDepth()=>new StackTrace().FrameCount>0?1:0;
    [MethodImpl(MethodImplOptions.NoInlining)] static void ST1(){ try{ ST2(); }catch(Exception e){ throw new Exception("outer",e);} }
    [MethodImpl(MethodImplOptions.NoInlining)] static void ST2(){ Thrower(9); }
    static int insuff;
    static void Insuff(int d){ RuntimeHelpers.EnsureSufficientExecutionStack(); Insuff(d+1); insuff++; }
    [MethodImpl(MethodImplOptions.NoInlining|MethodImplOptions.NoOptimization)] static int Deep(int n)=>n==0?0:1+Deep(n-1);
    [MethodImpl(MethodImplOptions.NoInlining|MethodImplOptions.NoOptimization)] static int So(int n)=>1+So(n+1);
    [MethodImpl(MethodImplOptions.NoInlining)] static int SpanWork(int n){ Span<byte> s=stackalloc byte[n+16]; s.Fill((byte)n); Span<int> q=MemoryMarshal.Cast<byte,int>(s); int r=0; foreach(var x in q) r+=x; for(int i=0;i<3;i++){ Span<long> t=stackalloc long[8]; t[i]=r; r+=(int)t[0]; } return r; }
    static class BadCctor{ static BadCctor(){ throw new Exception("cctor boo"); } static int x=1; public static int Use()=>x; }
    static class GenBad<T>{ static int x=Init(); static int Init(){ throw new Exception("gen"); } }
    struct W<T>{ public T v; }
    static Type KT(int i){ Type t=typeof(int); while(i>0){ t=(i&1)==1?typeof(W<>).MakeGenericType(t):typeof(KeyValuePair<,>).MakeGenericType(t,typeof(byte)); i>>=1; } return t; }
    [MethodImpl(MethodImplOptions.NoInlining)] static bool BadFilter(Exception e)=>throw new FormatException("in filter");
    [MethodImpl(MethodImplOptions.NoInlining)] static void FilterThrow(int i){ try{ try{ Thrower(i);}catch(InvalidOperationException e) when (BadFilter(e)){ Console.WriteLine("never"); } }catch(InvalidOperationException){ throw new ArgumentException(); } }
    static long fin;
    [MethodImpl(MethodImplOptions.NoInlining)] static int NestedFinally(int i,int d){ try{ if(d==0){ if(i%3==0) Thrower(i); return 1;} try{ return NestedFinally(i,d-1)+1; } finally{ fin++; try{ if(i%5==0) throw new ArgumentException(); }catch(ArgumentException){ fin+=2; } } } catch(InvalidOperationException) when(i%2==0 && d==3){ fin+=5; throw; } finally{ fin+=7; } }
    [MethodImpl(MethodImplOptions.NoInlining)] static void FinallyReplace(int i){ try{ try{ Thrower(i);} finally{ throw new ArithmeticException("rep"); } } finally{ fin++; } }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Rethrow(int d){ try{ if(d==0) throw new Exception("bottom"); Rethrow(d-1);}catch(Exception e){ if((d&1)==0) throw; throw new Exception("w"+d,e);} }
    [MethodImpl(MethodImplOptions.NoInlining)] static void DeepThrow(int d){ if(d==0) throw new Exception("bottom"); DeepThrow(d-1); fin++; }
    class Fin{ public static int n; ~Fin(){ Interlocked.Increment(ref n); Leaf(1);} }
    class BadFin{ ~BadFin(){ throw new Exception("fin boo"); } }
    class Res{ public static int n; static List<Res> l=new(); int k; ~Res(){ n++; l.Add(this); if(k++<3) GC.ReRegisterForFinalize(this);} }
    [MethodImpl(MethodImplOptions.NoInlining)] static void MakeBadFin(){ new BadFin(); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void AlcOnce(){ var alc=new AssemblyLoadContext("x",true); var asm=alc.LoadFromAssemblyPath("./bin/plug/plug.dll"); var m=asm.GetType("Plug").GetMethod("Run"); var r=(int)m.Invoke(null,new object[]{5}); if(r!=15) throw new Exception(); alc.Unload(); }
}
