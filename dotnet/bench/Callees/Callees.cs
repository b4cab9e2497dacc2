// One caller that calls its many callees in turn until it has made enough calls, as an interpreter or generated code does. The
// output has the CPU time of the calls, as compiling many callees takes longer.
using System;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using static ThreadClock;

internal static unsafe class Callees
{
    /// <summary>The runtime rejects types with more than 65,535 methods.</summary>
    private const int MostOfAType = 10_000;

    private static void Main(string[] arguments)
    {
        int count = int.Parse(arguments[0]), rounds = int.Parse(arguments[1]) / count;
        nint[] callees = Make(count);
        long sum = Call(callees);
        long begun = Now();
        for (int i = 0; i < rounds; i++) sum += Call(callees);
        long work = Now() - begun;
        Console.WriteLine(sum);
        Console.WriteLine($"work {work} ns");
    }

    private static nint[] Make(int count)
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Made"), AssemblyBuilderAccess.Run);
        ModuleBuilder module = assembly.DefineDynamicModule("Made");
        nint[] pointers = new nint[count];
        for (int first = 0; first < count; first += MostOfAType)
        {
            Type made = MakeType(module, first, Math.Min(first + MostOfAType, count));
            foreach (MethodInfo method in made.GetMethods(BindingFlags.Public | BindingFlags.Static))
                pointers[int.Parse(method.Name.Substring(1))] = method.MethodHandle.GetFunctionPointer();
        }
        return pointers;
    }

    private static Type MakeType(ModuleBuilder module, int first, int end)
    {
        TypeBuilder type = module.DefineType($"Made{first}", TypeAttributes.Public);
        for (int i = first; i < end; i++)
        {
            MethodBuilder method = type.DefineMethod(
                $"M{i}", MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) });
            method.SetImplementationFlags(MethodImplAttributes.NoInlining);
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldc_I4, i);
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Ret);
        }
        return type.CreateType()!;
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static long Call(nint[] callees)
    {
        long sum = 0;
        for (int i = 0; i < callees.Length; i++) sum += ((delegate*<int, int>)callees[i])(1);
        return sum;
    }
}
