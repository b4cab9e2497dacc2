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
namespace S;
public static unsafe partial class P
{
    public struct A1<T>{ public T v; [MethodImpl(MethodImplOptions.NoInlining)] public static int M(int x)=>x+sizeof(int); }
    public struct L<T,U>{ public T t; public U u; [MethodImpl(MethodImplOptions.NoInlining)] public static int M(int x)=>x+1; }
    public static class GM{ [MethodImpl(MethodImplOptions.NoInlining)] public static int M<T>(int x)=>x+1; }
    [MethodImpl(MethodImplOptions.NoInlining)] static int F1(int x)=>x+1; [MethodImpl(MethodImplOptions.NoInlining)] static int F2(int x)=>x+2;
    static void Register2()
    {
        R4();
        Cases["gen5000"]=a=>{ int N=a.Length>0?int.Parse(a[0]):5000; var prims=new[]{typeof(byte),typeof(short),typeof(int),typeof(long),typeof(float),typeof(double),typeof(char),typeof(bool),typeof(uint),typeof(ulong)}; long s=0; var mi=typeof(GM).GetMethod("M"); var fs=new List<Func<int,int>>(); for(int i=0;i<N;i++){ Type t=prims[i%10]; t=typeof(L<,>).MakeGenericType(t,prims[(i/10)%10]); t=typeof(L<,>).MakeGenericType(t,prims[(i/100)%10]); t=typeof(L<,>).MakeGenericType(t,prims[(i/1000)%10]); fs.Add((Func<int,int>)t.GetMethod("M").CreateDelegate(typeof(Func<int,int>))); fs.Add((Func<int,int>)mi.MakeGenericMethod(t).CreateDelegate(typeof(Func<int,int>))); } for(int k=0;k<3;k++) foreach(var f in fs) s+=f(k); Console.WriteLine(s); Count("~S.P+GM::M",3L*N); Count("~S.P+L`2::M",3L*N); };
        Cases["dispatch"]=a=>{ int N=int.Parse(a[0]), R=int.Parse(a[1]); // one caller with N callees, R rounds
            var ab=AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("disp"),AssemblyBuilderAccess.Run); var mb=ab.DefineDynamicModule("m"); var tb=mb.DefineType("T",TypeAttributes.Public|TypeAttributes.Class); for(int i=0;i<N;i++){ var m=tb.DefineMethod("M"+i,MethodAttributes.Public|MethodAttributes.Static,typeof(int),new[]{typeof(int)}); m.SetImplementationFlags(MethodImplAttributes.NoInlining); var il=m.GetILGenerator(); il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldc_I4,i); il.Emit(OpCodes.Add); il.Emit(OpCodes.Ret);} var t=tb.CreateType(); var fp=new nint[N]; for(int i=0;i<N;i++) fp[i]=t.GetMethod("M"+i).MethodHandle.GetFunctionPointer(); 
            long s=0; for(int r=0;r<2;r++) s+=Disp(fp); var sw=Stopwatch.StartNew(); for(int r=0;r<R;r++) s+=Disp(fp); sw.Stop(); Console.WriteLine(s); if(Environment.GetEnvironmentVariable("TIMES")!=null) Console.Error.WriteLine($"{sw.Elapsed.TotalMilliseconds*1e6/((double)R*N):F1} ns per call"); Count("S.P::Disp",R+2); };
        Cases["emit"]=a=>{ int N=a.Length>0?int.Parse(a[0]):300; long s=0; for(int i=0;i<N;i++){ s+=EmitOnce(i); if(i%20==19){ GC.Collect(); GC.WaitForPendingFinalizers(); } } Console.WriteLine(s); };
        Cases["dynmethod"]=a=>{ long s=0; for(int i=0;i<3000;i++){ var dm=new DynamicMethod("d"+i,typeof(int),new[]{typeof(int)},typeof(P).Module,true); var il=dm.GetILGenerator(); il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Call,typeof(P).GetMethod("Leaf")); il.Emit(OpCodes.Ret); var f=(Func<int,int>)dm.CreateDelegate(typeof(Func<int,int>)); s+=f(i); s+=f(i+1); if(i%500==0) GC.Collect(); } Console.WriteLine(s); Count("S.P::Leaf",6000); };
        Cases["expr"]=a=>{ long s=0; for(int i=0;i<1000;i++){ var p=Expression.Parameter(typeof(int)); var e=Expression.Lambda<Func<int,int>>(Expression.TryCatch(Expression.Add(Expression.Call(typeof(P).GetMethod("Leaf"),p),Expression.Constant(i)),Expression.Catch(typeof(Exception),Expression.Constant(1))),p); s+=e.Compile()(i); } Console.WriteLine(s); Count("S.P::Leaf",1000); };
        Cases["regex"]=a=>{ int n=0; for(int i=0;i<100;i++){ var r=new Regex($@"(\w+)@(\w+)\.com{i}?|a{{{i%5}}}b+(?<x>[0-9]+)",RegexOptions.Compiled); for(int k=0;k<20;k++) n+=r.Matches("joe@example.com and aab123 bbb55 foo@bar.com"+k).Count; } Console.WriteLine(n); };
        Cases["fnptr"]=a=>{ delegate*<int,int> f=&F1, g=&F2; long s=0; for(int i=0;i<1000000;i++){ s+=(i&1)==0?f(i):g(i);} Console.WriteLine(s); Count("S.P::F1",500000); Count("S.P::F2",500000); };
        Cases["mtcount"]=a=>{ int T=8,N=2000000; var ts=Enumerable.Range(0,T).Select(_=>new Thread(()=>{ for(int i=0;i<N;i++) Leaf(i);})).ToArray(); foreach(var t in ts)t.Start(); foreach(var t in ts)t.Join(); Count("S.P::Leaf",(long)T*N); };
        Cases["gcstorm"]=a=>{ var ts=Enumerable.Range(0,8).Select(_=>new Thread(()=>{ for(int i=0;i<200;i++){ var l=new List<object>(); for(int k=0;k<2000;k++) l.Add(new byte[k%100]); Leaf(i); if(i%20==0) GC.Collect(i%3); } })).ToArray(); foreach(var t in ts)t.Start(); foreach(var t in ts)t.Join(); Console.WriteLine("ok"); Count("S.P::Leaf",8*200); };
        Cases["gctorture"]=a=>{ for(int i=0;i<300;i++){ GC.Collect(2,GCCollectionMode.Forced,true,true); Leaf(i);} Console.WriteLine("ok"); Count("S.P::Leaf",300); };
        Cases["nogc"]=a=>{ Console.WriteLine(GC.TryStartNoGCRegion(10<<20)); for(int i=0;i<1000;i++) Leaf(i); GC.EndNoGCRegion(); Count("S.P::Leaf",1000); };
        Cases["pstree"]=a=>{ int d=int.Parse(a[0]); if(d==0){ Leaf(0); Console.WriteLine("leaf"); return; } var me=Environment.ProcessPath; var dll=typeof(P).Assembly.Location; for(int i=0;i<2;i++){ var psi=new ProcessStartInfo(me){RedirectStandardOutput=true}; var fx=Environment.GetEnvironmentVariable("FX"); if(Path.GetFileName(me)=="dotnet"){ psi.ArgumentList.Add("exec"); if(fx!=null){ psi.ArgumentList.Add("--fx-version"); psi.ArgumentList.Add(fx);} psi.ArgumentList.Add(dll);} psi.ArgumentList.Add("pstree"); psi.ArgumentList.Add((d-1).ToString()); using var p=Process.Start(psi); Console.Write(p.StandardOutput.ReadToEnd()); p.WaitForExit(); Console.WriteLine(d+" exit "+p.ExitCode);} };
        Cases["shells"]=a=>{ for(int i=0;i<30;i++){ using var p=Process.Start(new ProcessStartInfo("/bin/sh","-c \"echo hi; exit "+i+"\""){RedirectStandardOutput=true}); var o=p.StandardOutput.ReadToEnd(); p.WaitForExit(); if(p.ExitCode!=i||o!="hi\n") throw new Exception(); } Console.WriteLine("ok"); };
        Cases["parallel"]=a=>{ long s=0; Parallel.For(0,200000,i=>Interlocked.Add(ref s,Leaf(i))); Console.WriteLine(s); Count("S.P::Leaf",200000); };
        Cases["plinq"]=a=>{ Console.WriteLine(Enumerable.Range(0,500000).AsParallel().Select(x=>(long)Leaf(x)).Sum()); Count("S.P::Leaf",500000); };
        Cases["lock"]=a=>{ object o=new(); long n=0; var ts=Enumerable.Range(0,16).Select(_=>new Thread(()=>{ for(int i=0;i<20000;i++) lock(o){ n++; Leaf(i);} })).ToArray(); foreach(var t in ts)t.Start(); foreach(var t in ts)t.Join(); Console.WriteLine(n); Count("S.P::Leaf",16*20000); };
        Cases["timers"]=a=>{ int n=0; using var ev=new CountdownEvent(200); var l=new List<Timer>(); for(int i=0;i<200;i++) l.Add(new Timer(_=>{ Leaf(1); ev.Signal(); },null,i%20,Timeout.Infinite)); ev.Wait(); Count("S.P::Leaf",200); };
        Cases["bigstruct"]=a=>{ long s=0; var b=new Big(); for(int i=0;i<20000;i++){ b.v[i%4000]=i; s+=Take(b,i); } Console.WriteLine(s); Count("S.P::Take",20000); };
        Cases["bigret"]=a=>{ long s=0; for(int i=0;i<20000;i++){ var rr=Ret(i); s+=rr.v[5]; } Console.WriteLine(s); Count("S.P::Ret",20000); };
        Cases["vectors"]=a=>{ System.Numerics.Vector4 v=default; var m=System.Runtime.Intrinsics.Vector256<double>.Zero; for(int i=0;i<100000;i++){ v=V4(v,i); m=V256(m,i);} Console.WriteLine(v+" "+m); Count("S.P::V4",100000); Count("S.P::V256",100000); };
        Cases["floats"]=a=>{ double d=0; decimal c=0; float f=0; Int128 q=1; for(int i=1;i<100000;i++){ d=D(d,i); f=Fl(f,i); q=I128(q,i); } for(int i=1;i<1000;i++) c=Dc(c,i); Console.WriteLine($"{d:R} {f:R} {c} {q}"); Count("S.P::D",99999); Count("S.P::I128",99999); };
        Cases["refstruct"]=a=>{ var l=new System.Collections.Generic.LinkedList<int>(); Span<int> x=stackalloc int[10]; ref int r=ref Rf(x,3); r=5; for(int i=0;i<10000;i++){ ref int z=ref Rf(x,i%10); z++; } Console.WriteLine(x[3]); Count("S.P::Rf",10001); };
        Cases["iterators"]=a=>{ long s=0; foreach(var x in It(10000)) s+=x; Console.WriteLine(s); };
        Cases["closures"]=a=>{ long s=0; Func<int,int> f=x=>x; for(int i=0;i<500;i++){ var g=f; var k=i; f=x=>g(x)+Leaf(k); } Console.WriteLine(f(1)); Count("S.P::Leaf",500); };
        Cases["dynamic"]=a=>{ dynamic d=1; long s=0; for(int i=0;i<20000;i++){ d=i%3==0?(object)i:i%3==1?(object)(double)i:(object)("s"+i); s+=Dyn(d); } Console.WriteLine(s); };
        Cases["invoke"]=a=>{ var m=typeof(P).GetMethod("Leaf"); long s=0; for(int i=0;i<50000;i++) s+=(int)m.Invoke(null,new object[]{i}); Console.WriteLine(s); Count("S.P::Leaf",50000); };
        Cases["invokethrow"]=a=>{ var m=typeof(P).GetMethod("Thrower",BindingFlags.NonPublic|BindingFlags.Static); int s=0; for(int i=0;i<2000;i++) try{ m.Invoke(null,new object[]{i}); }catch(TargetInvocationException){s++;} Console.WriteLine(s); Count("S.P::Thrower",2000); };
        Cases["vcall"]=a=>{ I[] x={new C1(),new C2(),new C3()}; long s=0; for(int i=0;i<3000000;i++) s+=x[i%3].M(i); Console.WriteLine(s); Count("S.P+C1::M",1000000); Count("S.P+C2::M",1000000); Count("S.P+C3::M",1000000); };
        Cases["osr"]=a=>{ long s=0; for(int i=0;i<300;i++) s+=Loop(20000); Console.WriteLine(s); Count("S.P::Loop",300); Count("S.P::Leaf",300L*20000); };
        Cases["osrthrow"]=a=>{ int n=0; for(int k=0;k<30;k++){ try{ LoopThrow(60000);}catch(InvalidOperationException){n++;} } Console.WriteLine(n); Count("S.P::LoopThrow",30); Count("S.P::Thrower",30*60); };
        Cases["jit"]=a=>{ int N=a.Length>0?int.Parse(a[0]):3000; long s=0; var ab=AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("j"),AssemblyBuilderAccess.Run); var mb=ab.DefineDynamicModule("m"); for(int i=0;i<N;i++){ var tb=mb.DefineType("T"+i); var m=tb.DefineMethod("M",MethodAttributes.Public|MethodAttributes.Static,typeof(int),new[]{typeof(int)}); var il=m.GetILGenerator(); il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Call,typeof(P).GetMethod("Leaf")); il.Emit(OpCodes.Ret); s+=(int)tb.CreateType().GetMethod("M").Invoke(null,new object[]{i}); } Console.WriteLine(s); Count("S.P::Leaf",N); };
        Cases["hugeil"]=a=>{ int N=a.Length>0?int.Parse(a[0]):200000; var ab=AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("h"),AssemblyBuilderAccess.Run); var mb=ab.DefineDynamicModule("m"); var tb=mb.DefineType("T"); var m=tb.DefineMethod("M",MethodAttributes.Public|MethodAttributes.Static,typeof(int),new[]{typeof(int)}); var il=m.GetILGenerator(); il.Emit(OpCodes.Ldarg_0); for(int i=0;i<N;i++){ il.Emit(OpCodes.Call,typeof(P).GetMethod("Leaf")); } il.Emit(OpCodes.Ret); Console.WriteLine((int)tb.CreateType().GetMethod("M").Invoke(null,new object[]{0})); Count("S.P::Leaf",N); };
        Cases["names"]=a=>{ var ab=AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("n"),AssemblyBuilderAccess.Run); var mb=ab.DefineDynamicModule("m"); long s=0; int i=0; foreach(var nm in new[]{new string('x',1000),new string('é',500),"\u202e\u0000\u0001","a\nb\tc","::+`[],*&","\ud83d\ude00","\ud800","<script>alert(1)</script>"," ","'\"$(rm)`"}){ var tb=mb.DefineType("T"+nm+i); var m=tb.DefineMethod("M"+nm,MethodAttributes.Public|MethodAttributes.Static,typeof(int),new[]{typeof(int)}); var il=m.GetILGenerator(); il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Call,typeof(P).GetMethod("Leaf")); il.Emit(OpCodes.Ret); s+=(int)tb.CreateType().GetMethods()[0].Invoke(null,new object[]{i++}); } Console.WriteLine(s); Count("S.P::Leaf",10); };
        Cases["threadnames"]=a=>{ foreach(var nm in new[]{new string('x',5000),"\u202e","a\nb",""," ","\ud83d\ude00"}){ var t=new Thread(()=>Leaf(1)){Name=nm}; t.Start(); t.Join(); } Console.WriteLine("ok"); Count("S.P::Leaf",6); };
        Cases["bigexc"]=a=>{ int n=0; for(int i=0;i<50;i++) try{ throw new Exception(new string('m',1<<20)); }catch(Exception e){ n+=e.Message.Length; } Console.WriteLine(n); };
        Cases["excmsgthrow"]=a=>{ int n=0; for(int i=0;i<50;i++) try{ throw new EvilException(); }catch(EvilException){ n++; } Console.WriteLine(n+" "+EvilException.msg); };
        Cases["agg"]=a=>{ try{ Task.WhenAll(Enumerable.Range(0,100).Select(i=>Task.Run(()=>Thrower(i)))).Wait(); }catch(AggregateException e){ Console.WriteLine(e.InnerExceptions.Count);} Count("S.P::Thrower",100); };
        Cases["eventpipe"]=a=>{ using var l=new Lst(); for(int i=0;i<1000;i++){ Leaf(i); } GC.Collect(); for(int i=0;i<100&&l.n==0;i++) Thread.Sleep(50); Console.WriteLine(l.n>0); };
        Cases["httploop"]=a=>Http().Wait();
        Cases["mmap"]=a=>{ for(int i=0;i<100;i++){ using var m=System.IO.MemoryMappedFiles.MemoryMappedFile.CreateNew(null,1<<20); using var v=m.CreateViewAccessor(); v.Write(5,i);} Console.WriteLine("ok"); };
        Cases["taskstorm"]=a=>{ long n=0; var t=new Task[100000]; for(int i=0;i<t.Length;i++) t[i]=Task.Run(()=>{ Interlocked.Increment(ref n); Leaf(1);}); Task.WaitAll(t); Console.WriteLine(n); Count("S.P::Leaf",100000); };
        Cases["asyncdeep"]=a=>{ Console.WriteLine(AD(2000).Result); Count("~S.P::AD",2001); };
        Cases["asyncthrow"]=a=>{ int n=0; for(int i=0;i<200;i++) try{ AT(20).Wait(); }catch(AggregateException){n++;} Console.WriteLine(n); Count("S.P::Thrower",200); };
        Cases["weak"]=a=>{ var cwt=new ConditionalWeakTable<object,object>(); for(int i=0;i<10000;i++){ var k=new object(); cwt.Add(k,new object()); } GC.Collect(); Console.WriteLine("ok"); };
        Cases["spin"]=a=>{ var sw=Stopwatch.StartNew(); long n=0; while(sw.ElapsedMilliseconds<(a.Length>0?int.Parse(a[0]):2000)) { for(int i=0;i<1000;i++) n+=Leaf(i); } Console.WriteLine("done"); };
        Cases["ticker"]=a=>{ long n=0; var sw=Stopwatch.StartNew(); while(sw.ElapsedMilliseconds<int.Parse(a[0])){ Leaf(1); n++; if(n%1000==0){ File.WriteAllText(a[1],n.ToString()); } } };
        Cases["sleep"]=a=>{ Console.WriteLine("ready"); Console.Out.Flush(); Thread.Sleep(int.Parse(a[0])); Console.WriteLine("done"); };
        Cases["paths"]=a=>{ int d=int.Parse(a[0]); long s=Paths(d,0); Console.WriteLine(s); };
        Cases["mutual"]=a=>{ var r=new Random(3); long s=0; for(int i=0;i<2000;i++) s+=Mu(r,200,i); Console.WriteLine(s); };
        Cases["suspendres"]=a=>{ var stop=false; var ts=Enumerable.Range(0,4).Select(_=>new Thread(()=>{ while(!Volatile.Read(ref stop)) Leaf(1);})).ToArray(); foreach(var t in ts)t.Start(); for(int i=0;i<500;i++) GC.Collect(0); stop=true; foreach(var t in ts)t.Join(); Console.WriteLine("ok"); };
        Cases["localloop"]=a=>{ Console.WriteLine(Enumerable.Range(0,300).Sum(i=>Lo(i*100))); Count("S.P::Lo",300); };
        Cases["pinned"]=a=>{ var h=new List<GCHandle>(); for(int i=0;i<5000;i++) h.Add(GCHandle.Alloc(new byte[100],(GCHandleType)(i%4))); GC.Collect(); foreach(var x in h) x.Free(); Console.WriteLine("ok"); };
        Cases["profapi"]=a=>{ Console.WriteLine(Environment.GetEnvironmentVariable("CORECLR_ENABLE_PROFILING")??"none"); };
        Cases["argsmix"]=a=>{ long s=0; var o=new O2{self=null,name="n",arr=new[]{1,2}}; o.self=o; for(int i=0;i<200;i++){ s+=Mix(i,"str"+i,o,new Big2{a=i,b="x"},(byte)i,1.5*i,'c',i%2==0,new[]{1,2,3},new List<string>{"a"},(i,"t"),null,ref i2,out int q,DateTime.UnixEpoch.AddDays(i),Guid.Empty,(nint)i,i%2==0?(int?)null:i,DayOfWeek.Friday); s+=q; } Console.WriteLine(s); Count("S.P::Mix",200); };
        Cases["argsevil"]=a=>{ var e=new Evil(); for(int i=0;i<50;i++) TakeEvil(e,new EvilStruct{p=(int*)(nint)0xdeadbeef},new string('z',i*1000),new object[i]); Console.WriteLine(Evil.calls); };
        Cases["lambdas100k"]=a=>{ long s=0; Func<int,int> f=Leaf; for(int i=0;i<3000000;i++) s+=f(i); Console.WriteLine(s); Count("S.P::Leaf",3000000); };
        Cases["sync"]=a=>{ long s=0; for(int i=0;i<300000;i++) s+=Sy(i); Console.WriteLine(s); Count("S.P::Sy",300000); };
        Cases["syncthrow"]=a=>{ int s=0; for(int i=0;i<2000;i++) try{ SyThrow(i);}catch(InvalidOperationException){s++;} Console.WriteLine(s); Count("S.P::SyThrow",2000); };
        Cases["varargs"]=a=>{ long s=0; for(int i=0;i<100;i++) s+=string.Concat(i,"a",i,"b").Length; Console.WriteLine(s); };
        Cases["modinit"]=a=>{ Console.WriteLine(inited); };
        Cases["comwrap"]=a=>{ };
        Cases["abortthread"]=a=>{ try{ Thread.CurrentThread.Abort(); }catch(PlatformNotSupportedException e){ Console.WriteLine(e.Message);} };
        Cases["controlled"]=a=>{ var cts=new CancellationTokenSource(300); int n=0; try{ ControlledExecution.Run(()=>{ while(true){ Leaf(n); n++; } },cts.Token); }catch(OperationCanceledException){ Console.WriteLine("aborted"); } for(int i=0;i<50;i++){ var c=new CancellationTokenSource(2); try{ ControlledExecution.Run(()=>AbortMe(0),c.Token); }catch(OperationCanceledException){ } } Count("S.P::AbortRoot",0); Console.WriteLine("end"); };
    }
    static partial void R4();
    [MethodImpl(MethodImplOptions.NoInlining)] static int AbortMe(int d){ while(true){ try{ if(d<50) AbortMe(d+1); Leaf(d); } finally{ fin++; } } }
    static string inited="no"; [ModuleInitializer] internal static void Init(){ inited="yes"; }
    [MethodImpl(MethodImplOptions.NoInlining|MethodImplOptions.Synchronized)] static int Sy(int i)=>i+1;
    [MethodImpl(MethodImplOptions.NoInlining|MethodImplOptions.Synchronized)] static int SyThrow(int i){ Thrower(i); return 1; }
    class Evil{ public static int calls; public override string ToString(){ calls++; throw new Exception("evil"); } public override int GetHashCode(){ calls++; throw new Exception(); } public override bool Equals(object o){ calls++; throw new Exception(); } public string Prop{ get{ calls++; throw new Exception(); } } }
    struct EvilStruct{ public int* p; }
    [MethodImpl(MethodImplOptions.NoInlining)] static int TakeEvil(Evil e,EvilStruct s,string z,object[] o)=>o.Length;
    class EvilException:Exception{ public static int msg; public override string Message{ get{ msg++; throw new InvalidOperationException("evil message"); } } public override string ToString(){ msg++; return "x"; } public override string StackTrace{ get{ msg++; return "y"; } } }
    static int i2;
    class O2{ public O2 self; public string name; public int[] arr; }
    struct Big2{ public int a; public string b; public long c,d,e,f; }
    [MethodImpl(MethodImplOptions.NoInlining)] static int Mix(int i,string s,O2 o,Big2 b,byte by,double d,char c,bool bo,int[] ar,List<string> l,(int,string) t,object nul,ref int rf,out int ou,DateTime dt,Guid g,nint n,int? nu,DayOfWeek dw){ ou=i*2; rf+=i; return i+s.Length+b.a; }
    [MethodImpl(MethodImplOptions.NoInlining)] static int Lo(int n){ byte* p=stackalloc byte[n+1]; p[n]=5; int s=0; for(int i=0;i<3;i++){ s+=Leaf(p[n]); } return s; }
    [MethodImpl(MethodImplOptions.NoInlining)] static int Mu(Random r,int d,int i){ if(d==0) return 1; switch(r.Next(3)){ case 0: return Ma(r,d-1,i); case 1: return Mb(r,d-1,i); default: return Mu(r,d-1,i);} }
    [MethodImpl(MethodImplOptions.NoInlining)] static int Ma(Random r,int d,int i)=>d==0?2:Mu(r,d-1,i)+1;
    [MethodImpl(MethodImplOptions.NoInlining)] static int Mb(Random r,int d,int i)=>d==0?3:(r.Next(2)==0?Ma(r,d-1,i):Mu(r,d-1,i))+1;
    [MethodImpl(MethodImplOptions.NoInlining)] static long Paths(int d,int k){ if(d==0) return 1; return PA(d-1)+PB(d-1); }
    [MethodImpl(MethodImplOptions.NoInlining)] static long PA(int d)=>Paths(d,1);
    [MethodImpl(MethodImplOptions.NoInlining)] static long PB(int d)=>Paths(d,2);
    class Lst:System.Diagnostics.Tracing.EventListener{ public int n; protected override void OnEventSourceCreated(System.Diagnostics.Tracing.EventSource s){ if(s.Name=="Microsoft-Windows-DotNETRuntime") EnableEvents(s,System.Diagnostics.Tracing.EventLevel.Verbose,(System.Diagnostics.Tracing.EventKeywords)0x1FFFFF); } protected override void OnEventWritten(System.Diagnostics.Tracing.EventWrittenEventArgs e){ Interlocked.Increment(ref n);} }
    [MethodImpl(MethodImplOptions.NoInlining)] static long Loop(int n){ long s=0; for(int i=0;i<n;i++) s+=Leaf(i); return s; }
    [MethodImpl(MethodImplOptions.NoInlining)] static long LoopThrow(int n){ long s=0; for(int i=0;i<n;i++){ try{ if(i%1000==7) Thrower(i); s+=i; }catch(InvalidOperationException) when (i<n-1000){ s++; } if(i==n-1) Thrower(i); } return s; }
    interface I{ int M(int x); } class C1:I{ [MethodImpl(MethodImplOptions.NoInlining)] public int M(int x)=>x; } class C2:I{ [MethodImpl(MethodImplOptions.NoInlining)]public int M(int x)=>x+1; } struct C3:I{ [MethodImpl(MethodImplOptions.NoInlining)]public int M(int x)=>x+2; }
    static int Dyn(int i)=>1; static int Dyn(double i)=>2; static int Dyn(string s)=>s.Length;
    static IEnumerable<int> It(int n){ for(int i=0;i<n;i++) yield return i; }
    [MethodImpl(MethodImplOptions.NoInlining)] static ref int Rf(Span<int> s,int i)=>ref s[i];
    [MethodImpl(MethodImplOptions.NoInlining)] static double D(double d,int i)=>d+1.0/i; [MethodImpl(MethodImplOptions.NoInlining)] static float Fl(float d,int i)=>d+1.0f/i; [MethodImpl(MethodImplOptions.NoInlining)] static Int128 I128(Int128 q,int i)=>q*31+i; [MethodImpl(MethodImplOptions.NoInlining)] static decimal Dc(decimal d,int i)=>d+1m/i;
    [MethodImpl(MethodImplOptions.NoInlining)] static System.Numerics.Vector4 V4(System.Numerics.Vector4 v,int i)=>v+new System.Numerics.Vector4(i,1,2,3); [MethodImpl(MethodImplOptions.NoInlining)] static System.Runtime.Intrinsics.Vector256<double> V256(System.Runtime.Intrinsics.Vector256<double> v,int i)=>v+System.Runtime.Intrinsics.Vector256.Create((double)i);
    unsafe struct Big{ public fixed int v[4000]; }
    [MethodImpl(MethodImplOptions.NoInlining)] static long Take(Big b,int i)=>b.v[i%4000];
    [MethodImpl(MethodImplOptions.NoInlining)] static Big Ret(int i){ Big b=default; b.v[5]=i; return b; }
    [MethodImpl(MethodImplOptions.NoInlining)] static long Disp(nint[] fp){ long s=0; for(int i=0;i<fp.Length;i++) s+=((delegate*<int,int>)fp[i])(i); return s; }
    [MethodImpl(MethodImplOptions.NoInlining)] static int EmitOnce(int i){ var ab=AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("dyn"+i),AssemblyBuilderAccess.RunAndCollect); var mb=ab.DefineDynamicModule("m"); var tb=mb.DefineType("T",TypeAttributes.Public); for(int k=0;k<5;k++){ var m=tb.DefineMethod("M"+k,MethodAttributes.Public|MethodAttributes.Static,typeof(int),new[]{typeof(int)}); var il=m.GetILGenerator(); il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldc_I4,k); il.Emit(OpCodes.Add); il.Emit(OpCodes.Call,typeof(P).GetMethod("Leaf")); il.Emit(OpCodes.Ret);} var t=tb.CreateType(); int s=0; for(int k=0;k<5;k++) s+=(int)t.GetMethod("M"+k).Invoke(null,new object[]{i}); return s; }
}
